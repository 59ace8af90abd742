-- When somebody asked to stop, and when a push began that a stop no longer forestalls; which turn a yes begins where its
-- agent is not there to hear it; where a live comment went with its issue.

ALTER TABLE turns ADD COLUMN stop_at DOUBLE PRECISION;
ALTER TABLE turns ADD COLUMN push_began DOUBLE PRECISION;
ALTER TABLE approvals ADD COLUMN begins TEXT;
ALTER TABLE comments ADD COLUMN moved_to TEXT;
