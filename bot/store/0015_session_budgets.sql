-- What a conversation may spend in all its turns: what its repository said when it was last read (NULL: nothing), and
-- what people have added with `continue +3`.

ALTER TABLE sessions ADD COLUMN budget_usd DOUBLE PRECISION;
CREATE TABLE raises (
    source     TEXT PRIMARY KEY,               -- what asked for it: asked twice it is one
    session_id TEXT NOT NULL REFERENCES sessions (id),
    usd        DOUBLE PRECISION NOT NULL CHECK (usd > 0),
    login      TEXT NOT NULL,
    at         DOUBLE PRECISION NOT NULL
);
CREATE INDEX raises_session ON raises (session_id);

-- Until now each turn had a budget of its own: what was spent then does not count against the conversation, so that
-- nothing is cut off by an upgrade.
INSERT INTO raises (source, session_id, usd, login, at)
SELECT 'before:' || spend.session_id, spend.session_id, SUM(spend.cost_usd), '', MAX(spend.at)
FROM spend JOIN sessions ON sessions.id = spend.session_id
GROUP BY spend.session_id HAVING SUM(spend.cost_usd) > 0;
