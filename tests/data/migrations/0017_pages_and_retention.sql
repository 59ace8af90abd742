-- Rows as they are written under this schema.

INSERT INTO installation_settings (installation_id, name, value, set_by, set_at) VALUES (21, 'day_budget', '20.0', 'alice', 1790001300);
