-- Rows as they are written under this schema.

INSERT INTO signed_commits (session_id, commit_sha, signed_sha, at)
VALUES ('abcd1234', '1111111111111111111111111111111111111111', '2222222222222222222222222222222222222222', 1790000400);
