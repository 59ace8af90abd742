-- When it was asked by GitHub's clock, and what the thread said then: what was changed since, nobody has approved.
-- Where the branch stood when the work began (NULL: it was not there): a push expects it to be there still.

ALTER TABLE turns ADD COLUMN asked_at DOUBLE PRECISION;
ALTER TABLE turns ADD COLUMN thread_sha256 TEXT;
ALTER TABLE turns ADD COLUMN tip_sha TEXT;
