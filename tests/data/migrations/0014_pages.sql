-- Rows as they are written under this schema.

INSERT INTO visits (mark_sha256, user_id, login, began_at, ends_at) VALUES ('aa11', 11, 'alice', 1790001300, 1790030100);
