-- Rows as they are written under this schema.

INSERT INTO turns (session_id, n, state, step, kind, prompt, requester, requester_id, number, source, model, budget_usd,
                   timeout_seconds, created_at, new_branch, branch, pull_number, merged_sha, conflicts, discussions)
VALUES ('abcd1234', 18, 'queued', 'prepare', 'resolve', '', 'bob', 12, 5, 'comment:1:18', 'claude-sonnet-5-5', 5, 3600,
        1790001800, 1, 'forgehand/5-abcd1234-18', 9, '2222222222222222222222222222222222222222', '["calc.py"]',
        '[{"comment_id": 5, "path": "calc.py", "line": 2, "start_line": null, "hunk": "@@"}]');
