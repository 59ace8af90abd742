-- Who has signed in to the pages: known by the digest of a cookie, which nobody who reads the store can use.

CREATE TABLE visits (
    mark_sha256 TEXT PRIMARY KEY,
    user_id     BIGINT NOT NULL,
    login       TEXT NOT NULL,
    began_at    DOUBLE PRECISION NOT NULL,
    ends_at     DOUBLE PRECISION NOT NULL
);
CREATE INDEX visits_ends ON visits (ends_at);

CREATE INDEX deliveries_session ON deliveries (session_id);
CREATE INDEX deliveries_received ON deliveries (received_at);
