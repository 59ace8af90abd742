-- The comment in which people are asked, beside the live one: it is edited once there is an answer.
CREATE TABLE questions (
    approval_id TEXT PRIMARY KEY REFERENCES approvals (id),
    session_id  TEXT NOT NULL REFERENCES sessions (id),
    turn        INTEGER NOT NULL,
    comment_id  BIGINT NOT NULL,
    shows       TEXT CHECK (shows IN ('open', 'approved', 'denied', 'expired')), -- NULL: nobody knows
    restored    INTEGER NOT NULL DEFAULT 0                                       -- after a bot had changed it
);
CREATE INDEX questions_comment ON questions (comment_id);
CREATE INDEX questions_turn ON questions (session_id, turn);
