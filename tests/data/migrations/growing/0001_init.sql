-- A small schema that grows as ours may: payers are added to rows that are there, then their sums by day.

CREATE TABLE threads (id TEXT PRIMARY KEY, repo_id BIGINT NOT NULL);
CREATE TABLE sessions (id TEXT PRIMARY KEY, thread_id TEXT NOT NULL REFERENCES threads (id));
CREATE TABLE turns (
    session_id   TEXT NOT NULL REFERENCES sessions (id),
    n            INTEGER NOT NULL,
    requester_id BIGINT NOT NULL,
    PRIMARY KEY (session_id, n)
);
CREATE TABLE gateway_tokens (token_sha256 TEXT PRIMARY KEY, session_id TEXT NOT NULL, turn INTEGER NOT NULL);
CREATE TABLE spend (
    id              TEXT PRIMARY KEY,
    session_id      TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    installation_id BIGINT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('reserved', 'settled')),
    cost_usd        DOUBLE PRECISION NOT NULL DEFAULT 0,
    at              DOUBLE PRECISION NOT NULL
);
CREATE INDEX spend_installation ON spend (installation_id, at);
