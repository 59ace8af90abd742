-- How far GitHub's own log of deliveries was read, what the operator has switched, and which repositories are gone.

CREATE TABLE delivery_marks (
    app_id   BIGINT PRIMARY KEY,
    floor_at DOUBLE PRECISION NOT NULL,        -- of the first look ever: what is not newer was never meant for us
    floor_id BIGINT NOT NULL,
    read_at  DOUBLE PRECISION NOT NULL         -- by GitHub's clock: all that was delivered before was looked at
);

CREATE TABLE switches (
    name   TEXT PRIMARY KEY CHECK (name IN ('paused')),
    set_by TEXT NOT NULL,
    set_at DOUBLE PRECISION NOT NULL
);

ALTER TABLE repos ADD COLUMN removed_at DOUBLE PRECISION; -- the App may not see it any more
ALTER TABLE repos ADD COLUMN purged_at DOUBLE PRECISION;  -- and what we held of it is gone too
