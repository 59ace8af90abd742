-- Rows as they are written under this schema.

INSERT INTO questions (approval_id, session_id, turn, comment_id, shows) VALUES ('a-1', 'abcd1234', 1, 100077, 'open');
