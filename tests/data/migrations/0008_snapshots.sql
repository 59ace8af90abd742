-- Rows as they are written under this schema.

INSERT INTO snapshots (name, repo_id, template, setup_sha256, setup, egress, commit_sha, branch, state, created_at)
VALUES ('forgehand-7', 7, '', 'ab', '["make"]', '[]', 'cd', 'main', 'making', 1790000500);
