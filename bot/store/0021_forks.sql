-- Where the head of the pull request lives that a turn was asked on, if in another repository (JSON), and the file in
-- which the work is kept as a patch, since it may not be pushed there.

ALTER TABLE turns ADD COLUMN fork TEXT;
ALTER TABLE turns ADD COLUMN patch TEXT;
