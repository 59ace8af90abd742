-- What its person set for a turn; what they left open is the repository's and the operator's.
ALTER TABLE turns ADD COLUMN options TEXT;         -- JSON
