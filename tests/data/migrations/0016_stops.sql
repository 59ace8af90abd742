-- Rows as they are written under this schema.

UPDATE turns SET stop_requested = 'alice', stop_at = 1790001400, push_began = 1790001401;
UPDATE comments SET moved_to = '{"repo":{"id":8,"owner":"octo","name":"new","private":true,"default_branch":"main"},"installation":1,"number":3,"is_pull":false}';
