INSERT INTO spend (id, session_id, turn, installation_id, repo_id, user_id, state, cost_usd, at)
VALUES ('s-4', 'abcd1234', 2, 1, 7, 12, 'settled', 0.5, 1790000310);
