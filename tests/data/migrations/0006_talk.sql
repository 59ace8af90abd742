-- Rows as they are written under this schema.

INSERT INTO messages (source, session_id, turn, place, state, author, text, request, at)
VALUES ('comment:7:4', 'abcd1234', 2, 1, 'waiting', 'alice', 'mind the tests', '{}', 1790000400);
INSERT INTO approvals (id, session_id, turn, kind, state, request_id, matter, asked_at, expires_at, scope)
VALUES ('abcd1234-2', 'abcd1234', 2, 'tool', 'open', 'r-9', '{"tool": "Bash"}', 1790000401, 1790001001, 'once');
