-- Rows as they are written under this schema.

UPDATE sessions SET budget_usd = 2.5 WHERE id = 'abcd1234';
INSERT INTO raises (source, session_id, usd, login, at) VALUES ('comment:7:99', 'abcd1234', 3, 'alice', 1790001400);
