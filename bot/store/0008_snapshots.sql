-- Snapshots of environments: a repository's default branch after its setup commands and before any agent.
-- A row is there before its snapshot is, and goes after it: none is forgotten in the cloud.
-- furnish_seconds: what bringing the repository in and setting it up took, by which it is judged whether one is worth it.

CREATE TABLE snapshots (
    name         TEXT PRIMARY KEY,             -- what the cloud knows it by, also while it is being made
    repo_id      BIGINT NOT NULL,
    template     TEXT NOT NULL,                -- "": the operator's
    setup_sha256 TEXT NOT NULL,                -- of the setup commands that have run in it
    setup        TEXT NOT NULL,                -- JSON: those commands
    egress       TEXT NOT NULL,                -- JSON: hosts that they may reach
    commit_sha   TEXT NOT NULL,                -- what is checked out in it
    branch       TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('making', 'ready', 'condemned')),
    snapshot_id  TEXT,                         -- NULL until it was taken
    shallow      TEXT NOT NULL DEFAULT '[]',   -- JSON: where the history in it ends
    attempts     INTEGER NOT NULL DEFAULT 0,
    created_at   DOUBLE PRECISION NOT NULL
);
CREATE INDEX snapshots_repo ON snapshots (repo_id, state);

ALTER TABLE turns ADD COLUMN furnish_seconds DOUBLE PRECISION;
