-- What only some turns have is one typed payload, by the names of its parts (bot/kinds).
ALTER TABLE turns ADD COLUMN payload TEXT NOT NULL DEFAULT '{}';
ALTER TABLE turns DROP COLUMN max_turns;
ALTER TABLE turns DROP COLUMN context;
ALTER TABLE turns DROP COLUMN instructions;
ALTER TABLE turns DROP COLUMN notes;
ALTER TABLE turns DROP COLUMN ignored;
ALTER TABLE turns DROP COLUMN blocked;
ALTER TABLE turns DROP COLUMN left_out;
ALTER TABLE turns DROP COLUMN spot;
ALTER TABLE turns DROP COLUMN discussions;
ALTER TABLE turns DROP COLUMN fork;
ALTER TABLE turns DROP COLUMN patch;
ALTER TABLE turns DROP COLUMN merged_sha;
ALTER TABLE turns DROP COLUMN conflicts;
ALTER TABLE turns DROP COLUMN review;
ALTER TABLE turns DROP COLUMN review_id;
ALTER TABLE turns DROP COLUMN undoes;
