-- Rows as they are written under this schema.

INSERT INTO deliveries (guid, event, action, body_sha256, body, received_at, state, installation_id, repo_id, number, sender)
VALUES ('d-74', 'issue_comment', 'created', 'bb', '{}', 1790000300, 'received', 1, 7, 5, 'bob');
