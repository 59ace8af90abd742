-- What the agent is told beside its prompt, which files that would steer it were left unused (JSON: paths), and where
-- its environment asked to go and was not let (JSON: [{"host", "port", "count"}]).

ALTER TABLE turns ADD COLUMN instructions TEXT;
ALTER TABLE turns ADD COLUMN ignored TEXT;
ALTER TABLE turns ADD COLUMN blocked TEXT;
