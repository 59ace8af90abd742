-- What an environment uses while a turn works in it, and for how long a machine that is paid for has run for a turn.

CREATE TABLE samples (
    session_id   TEXT NOT NULL,
    turn         INTEGER NOT NULL,
    at           DOUBLE PRECISION NOT NULL,
    cpu_percent  DOUBLE PRECISION NOT NULL,    -- of one CPU: two busy ones are 200
    memory_bytes BIGINT NOT NULL,
    disk_bytes   BIGINT NOT NULL,
    PRIMARY KEY (session_id, turn, at)
);

CREATE TABLE machine_runs (
    session_id     TEXT NOT NULL,
    turn           INTEGER NOT NULL,
    environment_id TEXT NOT NULL,
    run_at         DOUBLE PRECISION NOT NULL,  -- when this run began, by the provider's clock: tells it from others
    began_at       DOUBLE PRECISION NOT NULL,  -- from when on it counts for this turn
    seen_at        DOUBLE PRECISION NOT NULL,
    ends_by        DOUBLE PRECISION NOT NULL,  -- it has ended then at the latest, if nobody sees it again
    ended_at       DOUBLE PRECISION,
    cpus           DOUBLE PRECISION NOT NULL,
    memory_gib     DOUBLE PRECISION NOT NULL,
    cpu_usd        DOUBLE PRECISION NOT NULL,  -- a second of one CPU, of one GiB: the prices that held then
    gib_usd        DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, turn, environment_id, run_at)
);
CREATE INDEX machine_runs_environment ON machine_runs (environment_id, ended_at);
CREATE INDEX machine_runs_began ON machine_runs (began_at);
