INSERT INTO threads (id, repo_id) VALUES ('7#5', 7);
INSERT INTO sessions (id, thread_id) VALUES ('abcd1234', '7#5');
INSERT INTO turns (session_id, n, requester_id) VALUES ('abcd1234', 1, 11), ('abcd1234', 2, 12);
INSERT INTO gateway_tokens (token_sha256, session_id, turn) VALUES ('t-2', 'abcd1234', 2);
INSERT INTO spend (id, session_id, turn, installation_id, state, cost_usd, at) VALUES
    ('s-1', 'abcd1234', 1, 1, 'settled', 0.125, 1790000010),
    ('s-2', 'abcd1234', 2, 1, 'reserved', 0, 1790000210),
    ('s-3', 'gone0000', 1, 1, 'settled', 0.0625, 1790000220);
