-- The kind that a turn was asked for as: where a repository wants plans first, its kind becomes another one.
ALTER TABLE turns ADD COLUMN asked_as TEXT NOT NULL DEFAULT 'run';
UPDATE turns SET asked_as = CASE
    WHEN kind = 'plan' AND merged_sha IS NOT NULL THEN 'resolve'
    WHEN kind = 'plan' AND source IN (SELECT source FROM ci_attempts) THEN 'fix_ci'
    ELSE kind END;
