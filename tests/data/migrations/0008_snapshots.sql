-- Rows as they are written under this schema.

INSERT INTO snapshots (name, repo_id, template, setup_sha256, setup, egress, commit_sha, branch, state, created_at)
VALUES ('forgehand-7-aa', 7, '', 'bb', '["make"]', '[]', 'cc', 'main', 'making', 1790000400);
UPDATE turns SET furnish_seconds = 21.5 WHERE session_id = 'abcd1234' AND n = 1;
