-- When somebody asked to stop, and when a push began that a stop no longer forestalls.

ALTER TABLE turns ADD COLUMN stop_at DOUBLE PRECISION;
ALTER TABLE turns ADD COLUMN push_began DOUBLE PRECISION;
