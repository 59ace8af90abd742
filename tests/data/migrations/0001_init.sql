-- Rows of each table, for later migrations to go over.
INSERT INTO installations (id, account, account_id, state, updated_at) VALUES
    (1, 'octo', 10, 'active', 1790000000.0);
INSERT INTO account_repositories (installation_id, repo, config, problem, know_how, read_at) VALUES
    (1, '{"id":9,"owner":"octo","name":".github","private":true,"default_branch":"main"}', NULL, 'line 2: no such key', 1,
     1790000000.0);
INSERT INTO repos (id, installation_id, owner, name, private, default_branch, config_state, config_problem,
                   config_values, config_read_at, updated_at, removed_at) VALUES
    (7, 1, 'octo', 'calc', 1, 'main', 'error', 'line 2: no such key', '[]', 1790000001.0, 1790000000.0, 1790000800.0);
INSERT INTO threads (id, repo_id, installation_id, number, is_pull, told_refused) VALUES
    ('7#5', 7, 1, 5, 0, 0);
INSERT INTO sessions (id, thread_id, branch, created_at, budget_usd) VALUES
    ('abcd1234', '7#5', 'forgehand/5-abcd1234', 1790000001.0, 2.5);
INSERT INTO deliveries (guid, event, action, body_sha256, body, received_at, state, installation_id, repo_id, number,
sender, attempts, session_id) VALUES
    ('d-1', 'issue_comment', 'created', 'aa', NULL, 1790000000.0, 'acted', 1, 7, 5, 'alice', 0, 'abcd1234'),
    ('d-74', 'issue_comment', 'created', 'bb', '{}', 1790000300.0, 'received', 1, 7, 5, 'bob', 0, NULL);
INSERT INTO delivery_marks (app_id, floor_at, floor_id, read_at) VALUES
    (1, 1790000000.0, 17, 1790000600.0);
INSERT INTO installation_settings (installation_id, name, value, set_by, set_at, changes) VALUES
    (21, 'day_budget', '20.0', 'alice', 1790001300.0, 1);
INSERT INTO turns (session_id, n, state, step, outcome, kind, prompt, requester, requester_id, number, source, model,
budget_usd, timeout_seconds, resumed, stop_requested, stream_offset, stream_skipped, attempts, created_at, finished_at,
step_times, asked_at, thread_sha256, tip_sha, untrusted, resumptions, checkpoint_at, stop_at, push_began, in_repo,
rescue_gone, new_branch, branch, pull_number, asked_as, options, replica, payload) VALUES
    ('abcd1234', 1, 'done', 'settle', 'pull_request', 'run', 'fix it', 'alice', 11, 5, 'comment:1:1', 'claude-sonnet-5-5', 5.0, 3600.0, 0, 'alice', 0, 0, 0, 1790000001.0, 1790000100.0, '{}', NULL, NULL, NULL, 0, 1, 1790000180.0, 1790001400.0, 1790001401.0, 7, 0, 0, NULL, NULL, 'run', '{"model": null, "base": "release", "turns": 20, "new_branch": true}', NULL, '{}'),
    ('abcd1234', 2, 'running', 'work', NULL, 'run', 'now this', 'bob', 12, 5, 'comment:1:2', 'claude-sonnet-5-5', 5.0, 3600.0, 0, 'alice', 0, 0, 0, 1790000200.0, NULL, '{}', NULL, NULL, NULL, 1, 0, NULL, 1790001400.0, 1790001401.0, 7, 0, 0, NULL, NULL, 'run', NULL, 'a1', '{}'),
    ('abcd1234', 3, 'queued', 'prepare', NULL, 'run', 'and this', 'bob', 12, 5, 'comment:1:3', 'claude-sonnet-5-5', 5.0, 3600.0, 0, 'alice', 0, 0, 0, 1790000300.0, NULL, '{}', 1790000299.0, 'ab', 'cd', 1, 0, NULL, 1790001400.0, 1790001401.0, 7, 0, 0, NULL, NULL, 'run', NULL, NULL, '{}'),
    ('abcd1234', 12, 'queued', 'prepare', NULL, 'run', 'and this', 'bob', 12, 5, 'comment:1:12', 'claude-sonnet-5-5', 5.0, 3600.0, 0, 'alice', 0, 0, 0, 1790001200.0, NULL, '{}', NULL, NULL, NULL, 1, 0, NULL, 1790001400.0, 1790001401.0, 7, 0, 0, NULL, NULL, 'run', NULL, NULL, '{}'),
    ('abcd1234', 18, 'queued', 'prepare', NULL, 'resolve', '', 'bob', 12, 5, 'comment:1:18', 'claude-sonnet-5-5', 5.0, 3600.0, 0, NULL, 0, 0, 0, 1790001800.0, NULL, '{}', NULL, NULL, NULL, 1, 0, NULL, NULL, NULL, NULL, 0, 1, 'forgehand/5-abcd1234-18', 9, 'resolve', NULL, NULL, '{}'),
    ('abcd1234', 21, 'queued', 'prepare', NULL, 'run', 'and the fork', 'bob', 12, 5, 'comment:1:21', 'claude-sonnet-5-5', 5.0, 3600.0, 0, NULL, 0, 0, 0, 1790002100.0, NULL, '{}', NULL, NULL, NULL, 1, 0, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, 'run', NULL, NULL, '{}');
INSERT INTO events (session_id, seq, turn, kind, line, at) VALUES
    ('abcd1234', 1, 1, 'stream', '{}', 1790000002.0);
INSERT INTO messages (source, session_id, turn, place, state, author, text, request, beside, at) VALUES
    ('comment:7:4', 'abcd1234', 2, 1, 'waiting', 'alice', 'mind the tests', '{}', 0, 1790000400.0),
    ('comment:7:5', 'abcd1234', 2, 2, 'answered', 'alice', 'why?', '{}', 1, 1790000410.0);
INSERT INTO comments (session_id, turn, comment_id, body_sha256, final, remade, reacted, edits, updated_at,
still_sha256, restored, spoilt, moved_to) VALUES
    ('abcd1234', 1, 99, NULL, 1, 0, 0, 0, 1790000100.0, NULL, 0, 0, '{"repo":{"id":8,"owner":"octo","name":"new","private":true,"default_branch":"main"},"installation":1,"number":3,"is_pull":false}'),
    ('abcd1234', 2, 100, 'ab', 0, 0, 0, 0, 1790000200.0, 'cd', 1, 0, '{"repo":{"id":8,"owner":"octo","name":"new","private":true,"default_branch":"main"},"installation":1,"number":3,"is_pull":false}');
INSERT INTO writer_buckets (installation_id, tokens, refilled_at, paused_until, pace, pace_since, pace_edits,
refused_at, quick) VALUES
    (1, 20.0, 1790000000.0, 0.0, 'strict', 0.0, 0, 0.0, 12.0),
    (2, 20.0, 1790000000.0, 0.0, 'lenient', 1790000000.0, 601, 0.0, 12.0);
INSERT INTO approvals (id, session_id, turn, kind, state, asked_at, request_id, matter, expires_at, scope, late) VALUES
    ('a-1', 'abcd1234', 1, 'plan', 'open', 1790000000.0, '', '{}', 0.0, 'once', 0),
    ('abcd1234-2', 'abcd1234', 2, 'tool', 'open', 1790000401.0, 'r-9', '{"tool": "Bash"}', 1790001001.0, 'once', 0);
INSERT INTO questions (approval_id, session_id, turn, comment_id, shows, restored) VALUES
    ('a-1', 'abcd1234', 1, 100077, 'open', 0);
INSERT INTO dashboards (repo_id, state, number, by_config, asked_by, edited_at) VALUES
    (7, 'on', 9, 1, 'alice', 1790000000.0);
INSERT INTO checks (session_id, turn, sha, moved, final, tries) VALUES
    ('abcd1234', 2, '1111111111111111111111111111111111111111', 0, 0, 0);
INSERT INTO ci_watches (repo_id, number, round, sha, event_at, due_at, reruns) VALUES
    (7, 4, 2, '1111111111111111111111111111111111111111', 1790001400.0, 1790001415.0, '{"runs": {"81": 1}, "names": ["test"], "note": ""}');
INSERT INTO ci_attempts (source, repo_id, number, round, sha, failing, notes, moved, at) VALUES
    ('ci:7:4:2:1111111111111111111111111111111111111111', 7, 4, 2, '1111111111111111111111111111111111111111', '["test"]', '[]', 0, 1790001420.0);
INSERT INTO findings (id, session_id, turn, place, repo_id, number, state, severity, path, line, body, code_sha256,
code_lines, at) VALUES
    ('abcd1234-2-1', 'abcd1234', 2, 1, 7, 3, 'open', 'major', 'a.py', 4, 'This divides by zero.', 'c0de', 1, 1790000500.0);
INSERT INTO dismissals (finding_id, repo_id, number, path, line, body, code_sha256, code_lines, severity, login, why,
source, at) VALUES
    ('abcd1234-2-2', 7, 3, 'a.py', 9, 'Nobody calls this.', 'c0de', 1, 'minor', 'alice', 'A plug-in does.', 'tick:7:1', 1790000600.0);
INSERT INTO signed_commits (session_id, commit_sha, signed_sha, at) VALUES
    ('abcd1234', '1111111111111111111111111111111111111111', '2222222222222222222222222222222222222222', 1790000400.0);
INSERT INTO environments (id, session_id, turn, state, made_of, prepared, setup_sha256, kept_until, updated_at,
purpose, home) VALUES
    ('abcd1234-1', 'abcd1234', 1, 'kept', 'aa', 1, 'bb', 1790002000.0, 1790000200.0, 'work', '{".profile": "00ff"}'),
    ('abcd1234-9-checks', 'abcd1234', 9, 'used', 'checks', 0, NULL, NULL, 1790001300.0, 'checks', '{".profile": "00ff"}');
INSERT INTO environment_marks (environment_id, mark) VALUES
    ('abcd1234-1', '0123456789abcdef0123456789abcdef');
INSERT INTO cloud (id, instance, next_at) VALUES (1, '0123456789abcdef', 1790000100.0);
INSERT INTO cloud_places (key, state, ahead, number, holder) VALUES
    ('abcd1234-1', 'held', 0, 1, 'a1b2c3d4e5f6');
INSERT INTO snapshots (name, repo_id, template, setup_sha256, setup, egress, commit_sha, branch, state, shallow,
attempts, created_at) VALUES
    ('forgehand-7-1', 7, '', 'ab12', '["make"]', '[]', 'c0ffee', 'main', 'making', '[]', 0, 1790000100.0);
INSERT INTO samples (session_id, turn, at, cpu_percent, memory_bytes, disk_bytes) VALUES
    ('abcd1234', 2, 1790000210.0, 35.5, 536870912, 1048576);
INSERT INTO machine_runs (session_id, turn, environment_id, run_at, began_at, seen_at, ends_by, cpus, memory_gib,
cpu_usd, gib_usd) VALUES
    ('abcd1234', 2, 'abcd1234-2', 1790000201.0, 1790000201.0, 1790000210.0, 1790000870.0, 2.0, 4.0, 1.4e-05, 4.5e-06);
INSERT INTO gateway_tokens (token_sha256, session_id, turn, installation_id, model, fallback, budget_usd, max_requests,
requests, concurrency, expires_at, created_at, repo_id, user_id) VALUES
    ('t-2', 'abcd1234', 2, 1, 'claude-sonnet-5-5', NULL, 5.0, 2000, 0, 8, 1790004000.0, 1790000200.0, 7, 12),
    ('t-3', 'abcd1234', 2, 1, 'claude-sonnet-5-5', 'claude-haiku-5-5', 5.0, 2000, 0, 8, 1790004000.0, 1790000300.0, 7, 12);
INSERT INTO tool_calls (id, session_id, turn, server, tool, approval_id, state, began_at, ended_at, bytes) VALUES
    ('tc-1', 'abcd1234', 2, 'tracker', 'find_issue', NULL, 'ok', 1790000205.0, 1790000205.5, 120),
    ('tc-2', 'abcd1234', 2, 'tracker', 'create_issue', 'abcd1234-2-1', 'open', 1790000206.0, NULL, 0);
INSERT INTO fetched_packages (session_id, turn, registry, name, version, downloads, bytes, from_cache, at) VALUES
    ('abcd1234', 2, 'internal', '@acme/pay', '1.2.3', 2, 4096, 1, 1790000300.0);
INSERT INTO spend (id, session_id, turn, installation_id, model, state, reserved_usd, cost_usd, input_tokens,
output_tokens, cache_read_tokens, cache_write_tokens, status, at, repo_id, user_id, unconfirmed_usd, question) VALUES
    ('s-1', 'abcd1234', 1, 1, 'claude-sonnet-5-5', 'settled', 0.2, 0.125, 1000, 100, 0, 0, 200, 1790000010.0, 7, 11, 0.0, NULL),
    ('s-2', 'abcd1234', 2, 1, 'claude-sonnet-5-5', 'reserved', 0.25, 0.0, 0, 0, 0, 0, NULL, 1790000210.0, 7, 12, 0.0, NULL),
    ('s-3', 'gone0000', 1, 1, 'claude-sonnet-5-5', 'settled', 0.25, 0.0625, 0, 0, 0, 0, NULL, 1790000220.0, 0, 0, 0.0, NULL),
    ('s-4', 'abcd1234', 2, 1, 'claude-sonnet-5-5', 'settled', 0.25, 0.5, 0, 0, 0, 0, NULL, 1790000310.0, 7, 12, 0.0, NULL),
    ('s-13', 'abcd1234', 2, 1, 'claude-sonnet-5-5', 'settled', 0.25, 0.5, 0, 0, 0, 0, NULL, 1790000320.0, 7, 12, 0.0, 'abcd1234-2'),
    ('s-70', 'abcd1234', 2, 1, 'claude-sonnet-5-5', 'abandoned', 0.5, 0.25, 0, 0, 0, 0, NULL, 1790000320.0, 7, 12, 0.25, NULL);
INSERT INTO spend_days (payer, number, day, cost_usd, unconfirmed_usd) VALUES
    ('installation_id', 1, 20717, 0.6875, 0.0),
    ('repo_id', 7, 20717, 0.625, 0.0),
    ('user_id', 11, 20717, 0.125, 0.0),
    ('user_id', 12, 20717, 0.5, 0.0),
    ('installation_id', 13, 20717, 0.5, 0.0),
    ('repo_id', 13, 20717, 0.5, 0.0),
    ('user_id', 13, 20717, 0.5, 0.0),
    ('installation_id', 70, 20717, 0.25, 0.25),
    ('repo_id', 70, 20717, 0.25, 0.25);
INSERT INTO turn_figures (session_id, turn, repo_id, installation_id, private, kind, usd, seconds, at, held_usd,
held_seconds) VALUES
    ('abcd1234', 1, 7, 1, 1, 'run', 0.42, 99.0, 1790000100.0, 1, 0);
INSERT INTO raises (source, session_id, usd, login, at) VALUES
    ('before:abcd1234', 'abcd1234', 1.125, '', 1790000320.0),
    ('comment:7:99', 'abcd1234', 3.0, 'alice', 1790001400.0);
INSERT INTO credentials (name, installation_id, ciphertext, updated_at) VALUES
    ('ANTHROPIC_API_KEY', 1, 'v1.x.y', 1790000000.0);
INSERT INTO outside_services (installation_id, purpose, name, kind, address, scope, options, credential,
credential_name, stored_by, stored_at) VALUES
    (21, 'registry', 'internal', 'npm', 'https://packages.example/npm/', '@acme', '{}', 'bearer', '', 'alice',
    1790000000.0);
INSERT INTO bulletins (id, installation_id, receiver, event, session_id, turn, state, at, next_at) VALUES
    ('msg_1', 21, 'chat', 'ended', 'abcd1234', 1, 'waiting', 1790000100.0, 1790000100.0);
INSERT INTO shares (token_sha256, session_id, made_by, made_by_id, of_private, made_at, ends_at) VALUES
    ('ee', 'abcd1234', 'alice', 11, 1, 1790000000.0, 1790086400.0);
INSERT INTO api_tokens (id, secret_sha256, installation_id, name, made_by, made_by_id, repositories, kinds, may_answer,
    budget_usd, made_at, ends_at) VALUES
    ('ab12cd34', 'ff', 21, 'ci', 'alice', 11, '[]', '["run"]', 0, 5.0, 1790000000.0, 1790086400.0);
INSERT INTO api_requests (source, token_id, at) VALUES ('api:api-ab12cd34-1', 'ab12cd34', 1790000000.0);
INSERT INTO visits (mark_sha256, user_id, login, began_at, ends_at) VALUES
    ('aa11', 11, 'alice', 1790001300.0, 1790030100.0);
INSERT INTO requests (id, kind, body, state, created_at) VALUES
    ('r-1', 'stop', '{}', 'open', 1790000000.0);
INSERT INTO switches (name, set_by, set_at) VALUES
    ('paused', 'operator', 1790000700.0);
INSERT INTO audit (id, at, actor, action, subject) VALUES
    ('u-1', 1790000000.0, 'operator', 'stop', 'abcd1234');
INSERT INTO replicas (id, home, host, version, started_at, beat, beat_at, leads) VALUES
    ('a1', 'home', 'host', '0.1.0', 1790000000.0, 3, 1790000006.0, 1);
INSERT INTO files (name, version, size, sha256, at) VALUES
    ('transcripts/a.jsonl', '001790000000-aa', 3,
    'ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356', 1790000000.0);
INSERT INTO file_chunks (version, n, body) VALUES
    ('001790000000-aa', 0, 'eAGrruUCAAJ4AQM=');
