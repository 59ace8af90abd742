-- Commits that GitHub has made and signed in the place of ours, by the commit for which they stand.

CREATE TABLE signed_commits (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    commit_sha TEXT NOT NULL,                  -- ours
    signed_sha TEXT NOT NULL,                  -- GitHub's: the same tree
    at         DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, commit_sha)
);
