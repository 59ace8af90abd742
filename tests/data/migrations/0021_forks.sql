-- Rows as they are written under this schema.

INSERT INTO turns (session_id, n, state, step, kind, prompt, requester, requester_id, number, source, model, budget_usd,
                   timeout_seconds, created_at, fork, patch)
VALUES ('abcd1234', 21, 'queued', 'prepare', 'run', 'and the fork', 'bob', 12, 5, 'comment:1:21', 'claude-sonnet-5-5', 5,
        3600, 1790002100, '{"repo_id": 77, "full_name": "mallory/shop", "branch": "feature"}', 'abcd1234-21.patch');
