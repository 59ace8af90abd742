-- Work on a pull request: where it goes, what was asked at lines of its diff, and the base that was brought in.

ALTER TABLE turns ADD COLUMN new_branch INTEGER NOT NULL DEFAULT 0; -- asked for: beside the branch, not on it
ALTER TABLE turns ADD COLUMN branch TEXT;          -- to which its work went; NULL: the session's
ALTER TABLE turns ADD COLUMN pull_number BIGINT;   -- that it opened for such a branch
ALTER TABLE turns ADD COLUMN merged_sha TEXT;      -- the base branch's commit that it brings in
ALTER TABLE turns ADD COLUMN conflicts TEXT;       -- JSON: the paths that git could not merge
ALTER TABLE turns ADD COLUMN discussions TEXT;     -- JSON: the places in the diff that it is to answer at
