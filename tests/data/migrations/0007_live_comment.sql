-- Rows as they are written under this schema.

INSERT INTO writer_buckets (installation_id, tokens, refilled_at, pace, pace_since, pace_edits, refused_at, quick)
VALUES (2, 20, 1790000000, 'lenient', 1790000000, 601, 0, 12);
INSERT INTO comments (session_id, turn, comment_id, body_sha256, still_sha256, restored, updated_at)
VALUES ('abcd1234', 2, 100, 'ab', 'cd', 1, 1790000200);
