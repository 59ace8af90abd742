-- Rows as they are written under this schema.

INSERT INTO environments (id, session_id, turn, state, purpose, made_of, updated_at)
SELECT sessions.id || '-9-checks', sessions.id, 9, 'used', 'checks', 'checks', 1790001300 FROM sessions LIMIT 1;
