-- Rows as they are written under this schema.

INSERT INTO samples (session_id, turn, at, cpu_percent, memory_bytes, disk_bytes)
VALUES ('abcd1234', 2, 1790000210, 35.5, 536870912, 1048576);
INSERT INTO machine_runs (session_id, turn, environment_id, run_at, began_at, seen_at, ends_by, cpus, memory_gib, cpu_usd,
                          gib_usd)
VALUES ('abcd1234', 2, 'abcd1234-2', 1790000201, 1790000201, 1790000210, 1790000870, 2, 4, 0.000014, 0.0000045);
