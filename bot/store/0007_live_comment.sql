-- What was learnt of how often an installation's comments may be edited, and the bucket of the last minute.
-- What a comment showed apart from the passing of time, how often somebody else has changed it, and how often it
-- was put right after a bot had done so.

ALTER TABLE writer_buckets ADD COLUMN pace TEXT NOT NULL DEFAULT 'strict'
    CHECK (pace IN ('strict', 'probing', 'lenient'));
ALTER TABLE writer_buckets ADD COLUMN pace_since DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE writer_buckets ADD COLUMN pace_edits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE writer_buckets ADD COLUMN refused_at DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE writer_buckets ADD COLUMN quick DOUBLE PRECISION NOT NULL DEFAULT 12;

ALTER TABLE comments ADD COLUMN still_sha256 TEXT;
ALTER TABLE comments ADD COLUMN restored INTEGER NOT NULL DEFAULT 0;
ALTER TABLE comments ADD COLUMN spoilt INTEGER NOT NULL DEFAULT 0;
