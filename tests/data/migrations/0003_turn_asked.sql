-- Rows as they are written under this schema.

INSERT INTO turns (session_id, n, state, step, kind, prompt, requester, requester_id, number, source, model, budget_usd,
                   timeout_seconds, created_at, asked_at, thread_sha256, tip_sha)
VALUES ('abcd1234', 3, 'queued', 'prepare', 'run', 'and this', 'bob', 12, 5, 'comment:1:3', 'claude-sonnet-5-5', 5, 3600,
        1790000300, 1790000299, 'ab', 'cd');
