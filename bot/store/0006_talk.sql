-- Words for a turn that is under way, what waits for a person's yes, and where in a diff a command stood.

CREATE TABLE messages (
    source     TEXT PRIMARY KEY,               -- of the comment, as in turns: asked twice is one message
    session_id TEXT NOT NULL REFERENCES sessions (id),
    turn       INTEGER NOT NULL,
    place      BIGINT NOT NULL,                -- their order within the session
    state      TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'moved', 'dropped')),
    author     TEXT NOT NULL,
    text       TEXT NOT NULL,                  -- the words of the comment, as written
    request    TEXT NOT NULL,                  -- JSON: the turn that it becomes where it comes too late
    at         DOUBLE PRECISION NOT NULL
);
CREATE INDEX messages_turn ON messages (session_id, turn, place);

ALTER TABLE turns ADD COLUMN approval TEXT;    -- what it was begun with a yes to
ALTER TABLE turns ADD COLUMN undoes INTEGER;   -- the turn whose push it takes back
ALTER TABLE turns ADD COLUMN spot TEXT;        -- JSON: the place in the diff where it was asked

-- An approval is bound to what it shows: `matter`. Only the first answer counts, and it is known by the text it stood in.
ALTER TABLE approvals ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN matter TEXT NOT NULL DEFAULT '{}';
ALTER TABLE approvals ADD COLUMN expires_at DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN scope TEXT NOT NULL DEFAULT 'once' CHECK (scope IN ('once', 'session'));
ALTER TABLE approvals ADD COLUMN source TEXT;
ALTER TABLE approvals ADD COLUMN late INTEGER NOT NULL DEFAULT 0; -- answered when nobody waited for it any more
CREATE UNIQUE INDEX approvals_request ON approvals (session_id, turn, kind, request_id);
CREATE INDEX approvals_due ON approvals (state, expires_at);
CREATE INDEX audit_at ON audit (at);
