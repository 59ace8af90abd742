-- Rows as they are written under this schema.

INSERT INTO snapshots (name, repo_id, template, setup_sha256, setup, egress, commit_sha, branch, state, created_at)
VALUES ('forgehand-7-ab', 7, '', 'ab', '["make setup"]', '[]', 'cd', 'main', 'ready', 1790000800);
