-- Rows as they are written under this schema.

INSERT INTO ci_watches (repo_id, number, round, sha, event_at, due_at, asked, reruns)
VALUES (7, 4, 2, '1111111111111111111111111111111111111111', 1790001400, 1790001415, NULL, '{"runs": {"81": 1}, "names": ["test"], "note": ""}');
INSERT INTO ci_attempts (source, repo_id, number, round, sha, failing, notes, at)
VALUES ('ci:7:4:2:1111111111111111111111111111111111111111', 7, 4, 2, '1111111111111111111111111111111111111111', '["test"]', '[]', 1790001420);
