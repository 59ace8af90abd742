-- Rows as they are written under this schema.

INSERT INTO snapshots (name, repo_id, template, setup_sha256, setup, egress, commit_sha, branch, state, created_at)
VALUES ('forgehand-7-1', 7, '', 'ab12', '["make"]', '[]', 'c0ffee', 'main', 'making', 1790000100);
