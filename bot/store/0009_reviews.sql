-- What a review has found and said, so that nothing is said twice, and the check run that shows a turn at its commit.

ALTER TABLE turns ADD COLUMN review TEXT;      -- JSON: what the agent handed over
ALTER TABLE turns ADD COLUMN review_id BIGINT; -- what was posted of it

CREATE TABLE findings (
    id            TEXT PRIMARY KEY,            -- "SESSION-TURN-PLACE": what the agent and our comments call it
    session_id    TEXT NOT NULL REFERENCES sessions (id),
    turn          INTEGER NOT NULL,
    place         INTEGER NOT NULL,
    repo_id       BIGINT NOT NULL,
    number        BIGINT NOT NULL,             -- the pull request
    state         TEXT NOT NULL CHECK (state IN ('open', 'resolved')),
    path          TEXT NOT NULL,
    line          INTEGER NOT NULL,
    body          TEXT NOT NULL,
    code_sha256   TEXT NOT NULL,               -- of the lines that it is about; '' where they could not be read
    code_lines    INTEGER NOT NULL,
    comment_id    BIGINT,                      -- NULL: it stands in the review's summary
    at            DOUBLE PRECISION NOT NULL
);
CREATE INDEX findings_pull ON findings (repo_id, number, state);

CREATE TABLE checks (
    session_id TEXT NOT NULL,
    turn       INTEGER NOT NULL,
    sha        TEXT NOT NULL,                  -- the commit at which it stands
    moved      INTEGER NOT NULL DEFAULT 0,     -- the turn has gone on to another commit
    told       TEXT CHECK (told IN ('queued', 'running', 'done', 'moved')), -- what GitHub shows, NULL: nothing yet
    final      INTEGER NOT NULL DEFAULT 0,     -- its conclusion is on GitHub
    tries      INTEGER NOT NULL DEFAULT 0,     -- of telling what is due, refused by GitHub
    PRIMARY KEY (session_id, turn, sha)
);
CREATE INDEX checks_due ON checks (final);
