-- Rows as they are written under this schema.

INSERT INTO environment_marks (environment_id, mark) VALUES ('abcd1234-1', '0123456789abcdef0123456789abcdef');
UPDATE environments SET home = '{".profile": "00ff"}';
