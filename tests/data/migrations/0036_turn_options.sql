-- Rows as they are written under this schema.

UPDATE turns SET options = '{"model": null, "base": "release", "turns": 20, "new_branch": true}' WHERE n = 1;
