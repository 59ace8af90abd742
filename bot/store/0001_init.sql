-- Runs on SQLite and on PostgreSQL: texts, whole numbers, seconds since the epoch as double precision.

CREATE TABLE deliveries (
    guid            TEXT PRIMARY KEY,
    event           TEXT NOT NULL,
    action          TEXT,
    body_sha256     TEXT NOT NULL,
    body            TEXT,                      -- kept until settled, then dropped: the ledger is slim
    received_at     DOUBLE PRECISION NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('received', 'acted', 'ignored', 'refused', 'failed')),
    reason          TEXT,                      -- why it was not acted upon, in words for `why`
    installation_id BIGINT,
    repo_id         BIGINT,
    number          BIGINT,
    sender          TEXT,
    attempts        INTEGER NOT NULL DEFAULT 0,
    session_id      TEXT
);
CREATE INDEX deliveries_state ON deliveries (state, received_at);
CREATE INDEX deliveries_thread ON deliveries (repo_id, number, received_at);

CREATE TABLE installations (
    id         BIGINT PRIMARY KEY,
    account    TEXT NOT NULL,
    account_id BIGINT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'deleted')),
    updated_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE repos (
    id              BIGINT PRIMARY KEY,
    installation_id BIGINT NOT NULL,
    owner           TEXT NOT NULL,
    name            TEXT NOT NULL,
    private         INTEGER NOT NULL,
    default_branch  TEXT NOT NULL,
    updated_at      DOUBLE PRECISION NOT NULL
);

CREATE TABLE threads (
    id              TEXT PRIMARY KEY,          -- "repo_id#number" of the issue; its pull request shares it
    repo_id         BIGINT NOT NULL REFERENCES repos (id),
    installation_id BIGINT NOT NULL,
    number          BIGINT NOT NULL,
    is_pull         INTEGER NOT NULL,
    told_refused    INTEGER NOT NULL DEFAULT 0, -- a person without permission was told once
    UNIQUE (repo_id, number)
);

CREATE TABLE sessions (
    id               TEXT PRIMARY KEY,
    thread_id        TEXT NOT NULL REFERENCES threads (id),
    agent_session_id TEXT,
    branch           TEXT,
    pull_number      BIGINT,
    pull_url         TEXT,
    environment_id   TEXT,
    created_at       DOUBLE PRECISION NOT NULL
);
CREATE INDEX sessions_thread ON sessions (thread_id, created_at);
CREATE INDEX sessions_pull ON sessions (pull_number);

CREATE TABLE turns (
    session_id      TEXT NOT NULL REFERENCES sessions (id),
    n               INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done')),
    step            TEXT NOT NULL CHECK (step IN ('prepare', 'furnish', 'work', 'collect', 'verify', 'publish', 'settle')),
    outcome         TEXT CHECK (outcome IN ('pull_request', 'pushed', 'answered', 'reviewed', 'planned', 'no_change',
                    'needs_input', 'stopped', 'over_budget', 'timed_out', 'killed', 'failed', 'refused')),
    detail          TEXT,                      -- the sentence that goes with the outcome
    kind            TEXT NOT NULL,             -- run, ask, plan, review, ...: the command's own word
    prompt          TEXT NOT NULL,             -- the words of the comment, as written
    requester       TEXT NOT NULL,
    requester_id    BIGINT NOT NULL,
    number          BIGINT NOT NULL,           -- the issue or pull request where it was asked; its comment goes there
    source          TEXT NOT NULL,             -- "comment:ID", "issue:ID", ...: dedupes what asked for it
    source_comment  BIGINT,                    -- the comment to react to
    model           TEXT NOT NULL,
    budget_usd      DOUBLE PRECISION NOT NULL,
    timeout_seconds DOUBLE PRECISION NOT NULL,
    base            TEXT,                      -- branch the work starts from and the pull request goes to
    base_sha        TEXT,                      -- pinned: the commit that the work starts from
    max_turns       INTEGER,                   -- of the model, as the command's option says
    config          TEXT,                      -- JSON: the repository's config that the turn is judged by
    context         TEXT,                      -- what the agent is given to read
    notes           TEXT,                      -- JSON: what was cut or withheld from it, in words
    resumed         INTEGER NOT NULL DEFAULT 0, -- the agent remembers its earlier turn
    stop_requested  TEXT,                      -- login of who asked, or NULL
    agent_result    TEXT,                      -- last words of the agent, bounded
    agent_error     TEXT,                      -- result's error kind, or NULL
    exit_code       INTEGER,
    stream_offset   BIGINT NOT NULL DEFAULT 0, -- bytes of the agent's output whose events are stored
    stream_skipped  INTEGER NOT NULL DEFAULT 0, -- lines that could not be read
    tree_sha        TEXT,                      -- what collect brought home
    commit_sha      TEXT,                      -- what publish pushed or will push
    files_changed   TEXT,                      -- JSON: [{"path", "added", "removed"}]
    verified        TEXT,                      -- JSON: [{"command", "exit_code", "where", "tail"}]
    rescue_ref      TEXT,
    kept            TEXT,                      -- name of the bundle on the host, where nothing may be pushed
    attempts        INTEGER NOT NULL DEFAULT 0,
    created_at      DOUBLE PRECISION NOT NULL,
    started_at      DOUBLE PRECISION,
    work_started_at DOUBLE PRECISION,
    finished_at     DOUBLE PRECISION,
    pulse_at        DOUBLE PRECISION,          -- last sign of life of the agent
    step_times      TEXT NOT NULL DEFAULT '{}', -- JSON: step -> when it began first
    PRIMARY KEY (session_id, n)
);
CREATE UNIQUE INDEX turns_source ON turns (source);
CREATE INDEX turns_state ON turns (state, created_at);

CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq        BIGINT NOT NULL,
    turn       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    line       TEXT NOT NULL,                  -- the stream line, capped
    at         DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE comments (
    session_id  TEXT NOT NULL,
    turn        INTEGER NOT NULL,
    comment_id  BIGINT,                        -- NULL: intended, not known to exist yet
    body_sha256 TEXT,                          -- of what GitHub was last given
    final       INTEGER NOT NULL DEFAULT 0,    -- the final form is on GitHub
    remade      INTEGER NOT NULL DEFAULT 0,
    reacted     INTEGER NOT NULL DEFAULT 0,
    edits       INTEGER NOT NULL DEFAULT 0,
    updated_at  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, turn)
);
CREATE INDEX comments_comment ON comments (comment_id);

CREATE TABLE gateway_tokens (
    token_sha256 TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL,
    turn         INTEGER NOT NULL,
    installation_id BIGINT NOT NULL,
    model        TEXT NOT NULL,
    budget_usd   DOUBLE PRECISION NOT NULL,
    max_requests INTEGER NOT NULL,
    requests     INTEGER NOT NULL DEFAULT 0,
    concurrency  INTEGER NOT NULL,
    expires_at   DOUBLE PRECISION NOT NULL,
    revoked_at   DOUBLE PRECISION,
    created_at   DOUBLE PRECISION NOT NULL
);
CREATE INDEX gateway_tokens_turn ON gateway_tokens (session_id, turn);

CREATE TABLE spend (
    id              TEXT PRIMARY KEY,          -- one row a request at the model
    session_id      TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    installation_id BIGINT NOT NULL,
    model           TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'abandoned')),
    reserved_usd    DOUBLE PRECISION NOT NULL,
    cost_usd        DOUBLE PRECISION NOT NULL DEFAULT 0,
    input_tokens    BIGINT NOT NULL DEFAULT 0,
    output_tokens   BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens  BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    status          INTEGER,                   -- the provider's HTTP status
    at              DOUBLE PRECISION NOT NULL
);
CREATE INDEX spend_turn ON spend (session_id, turn);
CREATE INDEX spend_installation ON spend (installation_id, at);

CREATE TABLE writer_buckets (
    installation_id BIGINT PRIMARY KEY,
    tokens          DOUBLE PRECISION NOT NULL,
    refilled_at     DOUBLE PRECISION NOT NULL,
    paused_until    DOUBLE PRECISION NOT NULL DEFAULT 0
);

CREATE TABLE credentials (
    name            TEXT NOT NULL,
    installation_id BIGINT NOT NULL,
    ciphertext      TEXT NOT NULL,
    updated_at      DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (name, installation_id)
);

CREATE TABLE approvals (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    turn       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'approved', 'denied', 'expired')),
    asked_at   DOUBLE PRECISION NOT NULL,
    answered_by TEXT,
    answered_at DOUBLE PRECISION
);

CREATE TABLE requests (
    id         TEXT PRIMARY KEY,               -- from the command line to the running service
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed')),
    answer     TEXT,
    created_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE audit (
    id         TEXT PRIMARY KEY,
    at         DOUBLE PRECISION NOT NULL,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    detail     TEXT
);
