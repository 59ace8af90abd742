-- What git did not take of a turn's work tree.
ALTER TABLE turns ADD COLUMN left_out TEXT;
