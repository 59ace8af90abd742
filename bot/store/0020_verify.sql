-- An environment is the agent's, or a fresh one in which the declared checks run on the commit alone.
-- mending: the attempt with which failing checks went back to the agent; NULL: they have not (yet, or at all).

ALTER TABLE environments ADD COLUMN purpose TEXT NOT NULL DEFAULT 'work' CHECK (purpose IN ('work', 'checks'));
ALTER TABLE turns ADD COLUMN mending INTEGER;
