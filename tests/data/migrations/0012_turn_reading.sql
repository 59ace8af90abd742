-- Rows as they are written under this schema.

INSERT INTO turns (session_id, n, state, step, kind, prompt, requester, requester_id, number, source, model, budget_usd,
                   timeout_seconds, created_at, instructions, ignored, blocked)
VALUES ('abcd1234', 12, 'queued', 'prepare', 'run', 'and this', 'bob', 12, 5, 'comment:1:12', 'claude-sonnet-5-5', 5,
        3600, 1790001200, 'Be brief.', '[".mcp.json"]', '[{"host": "example.com", "port": 443, "count": 2}]');
