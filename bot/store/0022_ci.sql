-- Checks of pull requests that are looked after: what is waited for, what was tried, and where somebody wants none of it.

CREATE TABLE ci_watches (
    repo_id    BIGINT NOT NULL REFERENCES repos (id),
    number     BIGINT NOT NULL,               -- the pull request
    round      INTEGER NOT NULL,              -- attempts are counted anew in each
    sha        TEXT NOT NULL,                 -- the head whose checks are meant
    event_at   DOUBLE PRECISION NOT NULL,     -- when a check of it was last heard of
    due_at     DOUBLE PRECISION,              -- when it is looked at next; NULL: nothing is waited for
    asked      TEXT,                          -- JSON: by whom and in which words; NULL: by nobody
    reruns     TEXT,                          -- JSON: what was run again at this commit; NULL: nothing yet
    off_by     TEXT,                          -- who wants no further fixes here
    PRIMARY KEY (repo_id, number)
);
CREATE INDEX ci_watches_due ON ci_watches (due_at);

CREATE TABLE ci_attempts (
    source  TEXT PRIMARY KEY,                 -- as in turns
    repo_id BIGINT NOT NULL,
    number  BIGINT NOT NULL,
    round   INTEGER NOT NULL,
    sha     TEXT NOT NULL,
    failing TEXT NOT NULL,                    -- JSON: names of the checks
    notes   TEXT NOT NULL,                    -- JSON: what the agent and its readers are told was left out
    moved   INTEGER NOT NULL DEFAULT 0,       -- the head was another one before it could begin: it does not count
    at      DOUBLE PRECISION NOT NULL
);
CREATE INDEX ci_attempts_pull ON ci_attempts (repo_id, number, round);
CREATE INDEX turns_commit ON turns (commit_sha);
