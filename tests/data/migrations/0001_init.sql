-- Rows as they were written under this schema: one of everything, and two turns of two people.

INSERT INTO deliveries (guid, event, action, body_sha256, received_at, state, installation_id, repo_id, number, sender, session_id)
VALUES ('d-1', 'issue_comment', 'created', 'aa', 1790000000, 'acted', 1, 7, 5, 'alice', 'abcd1234');
INSERT INTO installations (id, account, account_id, state, updated_at) VALUES (1, 'octo', 10, 'active', 1790000000);
INSERT INTO repos (id, installation_id, owner, name, private, default_branch, updated_at)
VALUES (7, 1, 'octo', 'calc', 1, 'main', 1790000000);
INSERT INTO threads (id, repo_id, installation_id, number, is_pull) VALUES ('7#5', 7, 1, 5, 0);
INSERT INTO sessions (id, thread_id, branch, created_at) VALUES ('abcd1234', '7#5', 'forgehand/5-abcd1234', 1790000001);
INSERT INTO turns (session_id, n, state, step, outcome, kind, prompt, requester, requester_id, number, source, model,
                   budget_usd, timeout_seconds, created_at, finished_at)
VALUES ('abcd1234', 1, 'done', 'settle', 'pull_request', 'run', 'fix it', 'alice', 11, 5, 'comment:1:1',
        'claude-sonnet-5-5', 5, 3600, 1790000001, 1790000100);
INSERT INTO turns (session_id, n, state, step, kind, prompt, requester, requester_id, number, source, model,
                   budget_usd, timeout_seconds, created_at)
VALUES ('abcd1234', 2, 'running', 'work', 'run', 'now this', 'bob', 12, 5, 'comment:1:2', 'claude-sonnet-5-5', 5, 3600,
        1790000200);
INSERT INTO events (session_id, seq, turn, kind, line, at) VALUES ('abcd1234', 1, 1, 'stream', '{}', 1790000002);
INSERT INTO comments (session_id, turn, comment_id, final, updated_at) VALUES ('abcd1234', 1, 99, 1, 1790000100);
INSERT INTO gateway_tokens (token_sha256, session_id, turn, installation_id, model, budget_usd, max_requests,
                            concurrency, expires_at, created_at)
VALUES ('t-2', 'abcd1234', 2, 1, 'claude-sonnet-5-5', 5, 2000, 8, 1790004000, 1790000200);
INSERT INTO spend (id, session_id, turn, installation_id, model, state, reserved_usd, cost_usd, input_tokens,
                   output_tokens, status, at)
VALUES ('s-1', 'abcd1234', 1, 1, 'claude-sonnet-5-5', 'settled', 0.2, 0.125, 1000, 100, 200, 1790000010);
INSERT INTO spend (id, session_id, turn, installation_id, model, state, reserved_usd, at)
VALUES ('s-2', 'abcd1234', 2, 1, 'claude-sonnet-5-5', 'reserved', 0.25, 1790000210);
INSERT INTO spend (id, session_id, turn, installation_id, model, state, reserved_usd, cost_usd, at)
VALUES ('s-3', 'gone0000', 1, 1, 'claude-sonnet-5-5', 'settled', 0.25, 0.0625, 1790000220);
INSERT INTO writer_buckets (installation_id, tokens, refilled_at) VALUES (1, 20, 1790000000);
INSERT INTO credentials (name, installation_id, ciphertext, updated_at) VALUES ('ANTHROPIC_API_KEY', 1, 'v1.x.y', 1790000000);
INSERT INTO approvals (id, session_id, turn, kind, state, asked_at) VALUES ('a-1', 'abcd1234', 1, 'plan', 'open', 1790000000);
INSERT INTO requests (id, kind, body, state, created_at) VALUES ('r-1', 'stop', '{}', 'open', 1790000000);
INSERT INTO audit (id, at, actor, action, subject) VALUES ('u-1', 1790000000, 'operator', 'stop', 'abcd1234');
