-- What a sandbox's disk has to say to be the newest one, written there and here before it rests. Two for a moment.
CREATE TABLE environment_marks (
    environment_id TEXT NOT NULL,
    mark TEXT NOT NULL,
    PRIMARY KEY (environment_id, mark)
);

ALTER TABLE environments ADD COLUMN home TEXT;  -- JSON: what lay in the agent's home before one came; NULL: nobody looked
