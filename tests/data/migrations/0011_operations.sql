-- Rows as they are written under this schema.

INSERT INTO delivery_marks (app_id, floor_at, floor_id, read_at) VALUES (1, 1790000000, 17, 1790000600);
INSERT INTO switches (name, set_by, set_at) VALUES ('paused', 'operator', 1790000700);
UPDATE repos SET removed_at = 1790000800 WHERE id = 7;
