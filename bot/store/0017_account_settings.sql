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
