-- Rows as they are written under this schema.

UPDATE turns SET left_out = '[["git~1/a.txt", "its name stands for git''s own folder on some systems"]]'
WHERE n = 1 AND tree_sha IS NOT NULL;
