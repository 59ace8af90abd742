-- What a request may have cost at most beside what is known of it, where nobody saw its end: it counts against every
-- limit, and is told apart from what is confirmed.
ALTER TABLE spend ADD COLUMN unconfirmed_usd DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE spend_days ADD COLUMN unconfirmed_usd DOUBLE PRECISION NOT NULL DEFAULT 0;
