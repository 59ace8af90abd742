-- Rows as they are written under this schema.

INSERT INTO gateway_tokens (token_sha256, session_id, turn, installation_id, repo_id, user_id, model, budget_usd,
                            max_requests, concurrency, expires_at, created_at)
VALUES ('t-3', 'abcd1234', 2, 1, 7, 12, 'claude-sonnet-5-5', 5, 2000, 8, 1790004000, 1790000300);
INSERT INTO spend (id, session_id, turn, installation_id, repo_id, user_id, model, state, reserved_usd, cost_usd, at)
VALUES ('s-4', 'abcd1234', 2, 1, 7, 12, 'claude-sonnet-5-5', 'settled', 0.25, 0.5, 1790000310);
