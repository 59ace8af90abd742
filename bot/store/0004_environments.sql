-- The environments that sessions use or have kept; a row is written before there is anything to find.

CREATE TABLE environments (
    id           TEXT PRIMARY KEY,              -- the key under which its provider finds it
    session_id   TEXT NOT NULL REFERENCES sessions (id),
    turn         INTEGER NOT NULL,              -- which uses it, or used it last
    state        TEXT NOT NULL CHECK (state IN ('used', 'kept', 'ending')),
    made_of      TEXT NOT NULL,                 -- digest of what was asked for: another wish needs another environment
    prepared     INTEGER NOT NULL DEFAULT 0,    -- the checkout was made for the present turn
    setup_sha256 TEXT,                          -- of the setup commands that have succeeded in it
    kept_until   DOUBLE PRECISION,
    updated_at   DOUBLE PRECISION NOT NULL
);
CREATE INDEX environments_session ON environments (session_id, state);

INSERT INTO environments (id, session_id, turn, state, made_of, prepared, updated_at)
SELECT sessions.environment_id, sessions.id, turns.n, 'used', '', 1, turns.created_at
FROM sessions JOIN turns ON turns.session_id = sessions.id
WHERE turns.state = 'running' AND sessions.environment_id = sessions.id || '-' || turns.n;

-- Whether the agent has read words of people without write access (1 where nobody knows), how often it was begun
-- anew after it was lost, and when what it has done was last brought home.
ALTER TABLE turns ADD COLUMN untrusted INTEGER NOT NULL DEFAULT 1;
ALTER TABLE turns ADD COLUMN resumptions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN checkpoint_at DOUBLE PRECISION;
