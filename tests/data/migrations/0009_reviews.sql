-- Rows as they are written under this schema.

INSERT INTO findings (id, session_id, turn, place, repo_id, number, state, path, line, body, code_sha256, code_lines, at)
VALUES ('abcd1234-2-1', 'abcd1234', 2, 1, 7, 3, 'open', 'a.py', 4, 'This divides by zero.', 'c0de', 1, 1790000500);
INSERT INTO checks (session_id, turn, sha) VALUES ('abcd1234', 2, '1111111111111111111111111111111111111111');
