-- Rows as they are written under this schema.

UPDATE spend SET unlikely_usd = 0.25 WHERE state = 'reserved';
