-- Rows as they are written under this schema.

UPDATE turns SET asked_as = 'fix_ci', kind = 'plan' WHERE n = 1 AND tree_sha IS NOT NULL;
