-- Rows as they are written under this schema.

INSERT INTO spend (id, session_id, turn, installation_id, repo_id, user_id, model, state, reserved_usd, cost_usd,
    unconfirmed_usd, at)
VALUES ('s-70', 'abcd1234', 2, 1, 7, 12, 'claude-sonnet-5-5', 'abandoned', 0.5, 0.25, 0.25, 1790000320);
INSERT INTO spend_days (payer, number, day, cost_usd, unconfirmed_usd)
VALUES ('installation_id', 70, 20717, 0.25, 0.25), ('repo_id', 70, 20717, 0.25, 0.25);
