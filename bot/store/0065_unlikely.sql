-- Of what a request has reserved, what only a request made for it would cost; it is not counted where nobody saw the end.
ALTER TABLE spend ADD COLUMN unlikely_usd REAL NOT NULL DEFAULT 0;
