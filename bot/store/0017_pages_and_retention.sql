-- What the owner of an account has set for its installation: narrower limits, and triggers for repositories that have
-- no file of their own. A value that was taken back stays as a row without one, so that a stale form is noticed.

CREATE TABLE installation_settings (
    installation_id BIGINT NOT NULL,
    name            TEXT NOT NULL,
    value           TEXT,                      -- JSON
    set_by          TEXT NOT NULL,
    set_at          DOUBLE PRECISION NOT NULL,
    changes         INTEGER NOT NULL DEFAULT 1, -- how often it was set
    PRIMARY KEY (installation_id, name)
);

-- Long lists are read page by page, newest first; of a repository too, without a look at the rows of others.
ALTER TABLE turns ADD COLUMN in_repo BIGINT;
UPDATE turns SET in_repo = (
    SELECT threads.repo_id FROM sessions JOIN threads ON threads.id = sessions.thread_id WHERE sessions.id = session_id);
CREATE INDEX turns_repo ON turns (in_repo, created_at);
CREATE INDEX deliveries_repo ON deliveries (repo_id, received_at);
DROP INDEX turns_state;
CREATE INDEX turns_state ON turns (state, created_at, in_repo);

-- How long work that was cut short is kept under a ref of the repository, as its comment has promised.
ALTER TABLE turns ADD COLUMN rescue_until DOUBLE PRECISION;
ALTER TABLE turns ADD COLUMN rescue_gone INTEGER NOT NULL DEFAULT 0; -- the ref is no more, or no longer ours to remove
CREATE INDEX turns_rescue ON turns (rescue_until) WHERE rescue_ref IS NOT NULL AND rescue_gone = 0;
