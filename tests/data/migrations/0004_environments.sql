-- Rows as they are written under this schema.

INSERT INTO environments (id, session_id, turn, state, made_of, prepared, setup_sha256, kept_until, updated_at)
VALUES ('abcd1234-1', 'abcd1234', 1, 'kept', 'aa', 1, 'bb', 1790002000, 1790000200);
UPDATE turns SET untrusted = 0, resumptions = 1, checkpoint_at = 1790000180 WHERE session_id = 'abcd1234' AND n = 1;
