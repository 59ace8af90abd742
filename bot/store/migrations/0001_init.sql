-- The schema, on SQLite and on PostgreSQL. Texts; whole numbers; flags are INTEGER, 0 or 1; times are seconds since 1970
-- and amounts are dollars, both DOUBLE PRECISION: eight bytes in either database.

-- What GitHub has sent: each delivery once, and how far GitHub's own log of deliveries was read. --------------------

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
CREATE INDEX deliveries_received ON deliveries (received_at);
CREATE INDEX deliveries_repo ON deliveries (repo_id, received_at);
CREATE INDEX deliveries_session ON deliveries (session_id);
CREATE INDEX deliveries_state ON deliveries (state, received_at);
CREATE INDEX deliveries_thread ON deliveries (repo_id, number, received_at);
CREATE INDEX deliveries_waiting ON deliveries (repo_id, number, received_at, guid, installation_id)
WHERE state = 'received';

CREATE TABLE delivery_marks (
    app_id   BIGINT PRIMARY KEY,
    floor_at DOUBLE PRECISION NOT NULL,        -- of the first look ever: what is not newer was never meant for us
    floor_id BIGINT NOT NULL,
    read_at  DOUBLE PRECISION NOT NULL         -- by GitHub's clock: all that was delivered before was looked at
);

-- Where things happen. ----------------------------------------------------------------------------------------------

CREATE TABLE installations (
    id         BIGINT PRIMARY KEY,
    account    TEXT NOT NULL,
    account_id BIGINT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'deleted')),
    updated_at DOUBLE PRECISION NOT NULL
);

-- What the owner of an account has set. A value that was taken back stays as a row without one, so that a stale form
-- is noticed.
CREATE TABLE installation_settings (
    installation_id BIGINT NOT NULL,
    name            TEXT NOT NULL,
    value           TEXT,                      -- JSON
    set_by          TEXT NOT NULL,
    set_at          DOUBLE PRECISION NOT NULL,
    changes         INTEGER NOT NULL DEFAULT 1, -- how often it was set
    PRIMARY KEY (installation_id, name)
);

CREATE TABLE account_repositories (            -- an account's `.github`, as we last read it
    installation_id BIGINT PRIMARY KEY,
    repo            TEXT,                      -- JSON; NULL: the account has none, or the App is not installed on it
    config          TEXT,                      -- its `.github/forgehand.yml`; NULL: it has none that can be used
    problem         TEXT,                      -- what is wrong with that file, in words
    know_how        INTEGER NOT NULL,          -- it has skills, agents or commands
    read_at         DOUBLE PRECISION NOT NULL  -- below 0: read it again
);

CREATE TABLE repos (
    id              BIGINT PRIMARY KEY,
    installation_id BIGINT NOT NULL,
    owner           TEXT NOT NULL,
    name            TEXT NOT NULL,
    private         INTEGER NOT NULL,
    default_branch  TEXT NOT NULL,
    updated_at      DOUBLE PRECISION NOT NULL,
    config_state    TEXT CHECK (config_state IN ('ok', 'missing', 'error')), -- of the last look; NULL: none yet
    config_problem  TEXT,                      -- what is wrong with it, in words
    config_values   TEXT,                      -- JSON: each key that is set, its value, and where that stands
    config_read_at  DOUBLE PRECISION,
    removed_at      DOUBLE PRECISION,          -- the App may not see it any more
    purged_at       DOUBLE PRECISION           -- and what we held of it is gone too
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

-- The conversations, one for each thread, and the runs of the agent in them. ----------------------------------------

CREATE TABLE sessions (
    id               TEXT PRIMARY KEY,
    thread_id        TEXT NOT NULL REFERENCES threads (id),
    agent_session_id TEXT,
    branch           TEXT,
    pull_number      BIGINT,
    pull_url         TEXT,
    environment_id   TEXT,
    created_at       DOUBLE PRECISION NOT NULL,
    budget_usd       DOUBLE PRECISION          -- what its repository lets it spend, as it was last read
);
CREATE INDEX sessions_pull ON sessions (pull_number);
CREATE INDEX sessions_thread ON sessions (thread_id, created_at);

CREATE TABLE turns (
    session_id      TEXT NOT NULL REFERENCES sessions (id),
    n               INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done')),
    step            TEXT NOT NULL
        CHECK (step IN ('prepare', 'furnish', 'work', 'collect', 'verify', 'publish', 'settle')),
    outcome         TEXT
        CHECK (outcome IN ('pull_request', 'pushed', 'answered', 'reviewed', 'planned', 'no_change', 'needs_input',
        'stopped', 'over_budget', 'timed_out', 'killed', 'failed', 'refused')),
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
    config          TEXT,                      -- JSON: the repository's config that the turn is judged by
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
    asked_at        DOUBLE PRECISION,          -- by GitHub's clock
    thread_sha256   TEXT,                      -- of the thread's title and text when it was asked
    tip_sha         TEXT,                      -- head of the branch that it works on
    untrusted       INTEGER NOT NULL DEFAULT 1, -- the agent has read words of people without write access
    resumptions     INTEGER NOT NULL DEFAULT 0, -- how often it was begun again after its agent was lost
    checkpoint_at   DOUBLE PRECISION,          -- when what it has done was last brought home
    approval        TEXT,                      -- what it was begun with a yes to
    furnish_seconds DOUBLE PRECISION,          -- what bringing the repository in and setting it up took
    stop_at         DOUBLE PRECISION,          -- when somebody asked to stop
    push_began      DOUBLE PRECISION,          -- from then on a wish to stop comes too late
    in_repo         BIGINT,                    -- the thread's repository, for lists
    rescue_until    DOUBLE PRECISION,          -- how long its comment promised to keep the rescue ref
    rescue_gone     INTEGER NOT NULL DEFAULT 0, -- the ref is no more, or no longer ours to remove
    new_branch      INTEGER NOT NULL DEFAULT 0, -- asked for: beside the branch, not on it
    branch          TEXT,                      -- to which its work went; NULL: the session's
    pull_number     BIGINT,                    -- that it opened for such a branch
    mending         INTEGER,                   -- the attempt with which failing checks went back to the agent
    asked_as        TEXT NOT NULL DEFAULT 'run', -- its kind when it was asked for
    options         TEXT,                      -- JSON: what its person set
    replica         TEXT,                      -- which runs it, or ran it last; NULL: the only service
    -- JSON: what only some turns have, by the names of its parts (bot/kinds)
    payload         TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (session_id, n)
);
CREATE INDEX turns_commit ON turns (commit_sha);
CREATE INDEX turns_repo ON turns (in_repo, created_at);
CREATE INDEX turns_rescue ON turns (rescue_until) WHERE rescue_ref IS NOT NULL AND rescue_gone = 0;
CREATE UNIQUE INDEX turns_source ON turns (source);
CREATE INDEX turns_state ON turns (state, created_at, in_repo);

CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq        BIGINT NOT NULL,
    turn       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    line       TEXT NOT NULL,                  -- the stream line, capped
    at         DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE messages (
    source     TEXT PRIMARY KEY,               -- of the comment, as in turns: asked twice is one message
    session_id TEXT NOT NULL REFERENCES sessions (id),
    turn       INTEGER NOT NULL,
    place      BIGINT NOT NULL,                -- their order within the session
    state      TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'moved', 'dropped', 'answered')),
    author     TEXT NOT NULL,
    text       TEXT NOT NULL,                  -- the words of the comment, as written
    request    TEXT NOT NULL,                  -- JSON: the turn that it becomes where it comes too late
    beside     INTEGER NOT NULL DEFAULT 0,     -- a question that the agent answers without a change to its work
    at         DOUBLE PRECISION NOT NULL
);
CREATE INDEX messages_turn ON messages (session_id, turn, place);

-- What people are shown and asked. ----------------------------------------------------------------------------------

-- The live comment of each turn.
CREATE TABLE comments (
    session_id   TEXT NOT NULL,
    turn         INTEGER NOT NULL,
    comment_id   BIGINT,                       -- NULL: intended, not known to exist yet
    body_sha256  TEXT,                         -- of what GitHub was last given
    final        INTEGER NOT NULL DEFAULT 0,   -- the final form is on GitHub
    remade       INTEGER NOT NULL DEFAULT 0,
    reacted      INTEGER NOT NULL DEFAULT 0,
    edits        INTEGER NOT NULL DEFAULT 0,
    updated_at   DOUBLE PRECISION NOT NULL,
    still_sha256 TEXT,                         -- of what it showed apart from the passing of time
    restored     INTEGER NOT NULL DEFAULT 0,   -- how often it was put right after a bot had changed it
    spoilt       INTEGER NOT NULL DEFAULT 0,   -- how often somebody else has changed it
    moved_to     TEXT,                         -- JSON: where it went with its issue
    PRIMARY KEY (session_id, turn)
);
CREATE INDEX comments_comment ON comments (comment_id);

-- The edit quota of each installation, and what was learnt of GitHub's limits.
CREATE TABLE writer_buckets (
    installation_id BIGINT PRIMARY KEY,
    tokens          DOUBLE PRECISION NOT NULL,
    refilled_at     DOUBLE PRECISION NOT NULL,
    paused_until    DOUBLE PRECISION NOT NULL DEFAULT 0,
    pace            TEXT NOT NULL DEFAULT 'strict' CHECK (pace IN ('strict', 'probing', 'lenient')),
    pace_since      DOUBLE PRECISION NOT NULL DEFAULT 0,
    pace_edits      INTEGER NOT NULL DEFAULT 0,
    refused_at      DOUBLE PRECISION NOT NULL DEFAULT 0,
    quick           DOUBLE PRECISION NOT NULL DEFAULT 12 -- what is left of the last minute's edits
);

-- What waits for a person's yes. Only the first answer counts.
CREATE TABLE approvals (
    id          TEXT PRIMARY KEY,
    session_id  TEXT NOT NULL,
    turn        INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('open', 'approved', 'denied', 'expired')),
    asked_at    DOUBLE PRECISION NOT NULL,
    answered_by TEXT,
    answered_at DOUBLE PRECISION,
    request_id  TEXT NOT NULL DEFAULT '',      -- of the agent's own request, if it asked
    matter      TEXT NOT NULL DEFAULT '{}',    -- JSON: what is asked, as it was shown
    expires_at  DOUBLE PRECISION NOT NULL DEFAULT 0,
    scope       TEXT NOT NULL DEFAULT 'once' CHECK (scope IN ('once', 'session')),
    source      TEXT,                          -- the text in which it was answered
    late        INTEGER NOT NULL DEFAULT 0,    -- answered when nobody waited for it any more
    begins      TEXT                           -- JSON: the turn that a yes begins if the agent is not there to hear it
);
CREATE INDEX approvals_due ON approvals (state, expires_at);
CREATE UNIQUE INDEX approvals_request ON approvals (session_id, turn, kind, request_id);

-- The comments in which people are asked, beside the live ones.
CREATE TABLE questions (
    approval_id TEXT PRIMARY KEY REFERENCES approvals (id),
    session_id  TEXT NOT NULL REFERENCES sessions (id),
    turn        INTEGER NOT NULL,
    comment_id  BIGINT NOT NULL,
    shows       TEXT CHECK (shows IN ('open', 'approved', 'denied', 'expired')), -- NULL: nobody knows
    restored    INTEGER NOT NULL DEFAULT 0     -- after a bot had changed it
);
CREATE INDEX questions_comment ON questions (comment_id);
CREATE INDEX questions_turn ON questions (session_id, turn);

-- The one issue per repository that shows what runs and waits there.
CREATE TABLE dashboards (
    repo_id      BIGINT PRIMARY KEY REFERENCES repos (id),
    state        TEXT NOT NULL CHECK (state IN ('on', 'off', 'gone')), -- gone: moved or deleted, and left at that
    number       BIGINT,                       -- of the issue; NULL: intended, not known to exist yet
    by_config    INTEGER NOT NULL,             -- the repository's config wants it, as it was last read
    asked_by     TEXT,                         -- who wants it besides
    remade       INTEGER NOT NULL DEFAULT 0,   -- opened again, once, after somebody had deleted it
    body_sha256  TEXT,                         -- of what GitHub was last given; NULL: nobody knows what it shows
    still_sha256 TEXT,                         -- of the same without the money
    spoilt       INTEGER NOT NULL DEFAULT 0,   -- how often somebody else has changed it
    restored     INTEGER NOT NULL DEFAULT 0,   -- how often it was put right after a bot had changed it
    edited_at    DOUBLE PRECISION NOT NULL DEFAULT 0
);

-- Checks and reviews. -----------------------------------------------------------------------------------------------

-- The check runs that show our turns.
CREATE TABLE checks (
    session_id TEXT NOT NULL,
    turn       INTEGER NOT NULL,
    sha        TEXT NOT NULL,                  -- the commit at which it stands
    moved      INTEGER NOT NULL DEFAULT 0,     -- the turn has gone on to another commit
    told       TEXT CHECK (told IN ('queued', 'running', 'done', 'moved')), -- what GitHub shows, NULL: nothing yet
    final      INTEGER NOT NULL DEFAULT 0,     -- its conclusion is on GitHub
    tries      INTEGER NOT NULL DEFAULT 0,     -- of telling what is due, refused by GitHub
    PRIMARY KEY (session_id, turn, sha)
);
CREATE INDEX checks_due ON checks (final);

-- The pull requests whose checks are watched.
CREATE TABLE ci_watches (
    repo_id  BIGINT NOT NULL REFERENCES repos (id),
    number   BIGINT NOT NULL,                  -- the pull request
    round    INTEGER NOT NULL,                 -- attempts are counted anew in each
    sha      TEXT NOT NULL,                    -- the head whose checks are meant
    event_at DOUBLE PRECISION NOT NULL,        -- when a check of it was last heard of
    due_at   DOUBLE PRECISION,                 -- when it is looked at next; NULL: nothing is waited for
    asked    TEXT,                             -- JSON: by whom and in which words; NULL: by nobody
    reruns   TEXT,                             -- JSON: what was run again at this commit; NULL: nothing yet
    off_by   TEXT,                             -- who wants no further fixes here
    PRIMARY KEY (repo_id, number)
);
CREATE INDEX ci_watches_due ON ci_watches (due_at);

-- The turns that tried to fix the checks of one.
CREATE TABLE ci_attempts (
    source  TEXT PRIMARY KEY,                  -- as in turns
    repo_id BIGINT NOT NULL,
    number  BIGINT NOT NULL,
    round   INTEGER NOT NULL,
    sha     TEXT NOT NULL,
    failing TEXT NOT NULL,                     -- JSON: names of the checks
    notes   TEXT NOT NULL,                     -- JSON: what the agent and its readers are told was left out
    moved   INTEGER NOT NULL DEFAULT 0,        -- the head was another one before it could begin: it does not count
    at      DOUBLE PRECISION NOT NULL
);
CREATE INDEX ci_attempts_pull ON ci_attempts (repo_id, number, round);

-- What reviews have said, so that nothing is said twice.
CREATE TABLE findings (
    id          TEXT PRIMARY KEY,              -- "SESSION-TURN-PLACE": what the agent and our comments call it
    session_id  TEXT NOT NULL REFERENCES sessions (id),
    turn        INTEGER NOT NULL,
    place       INTEGER NOT NULL,
    repo_id     BIGINT NOT NULL,
    number      BIGINT NOT NULL,               -- the pull request
    state       TEXT NOT NULL CHECK (state IN ('open', 'resolved', 'dismissed')),
    severity    TEXT NOT NULL CHECK (severity IN ('critical', 'major', 'minor', 'nit')),
    path        TEXT NOT NULL,
    line        INTEGER NOT NULL,
    body        TEXT NOT NULL,
    code_sha256 TEXT NOT NULL,                 -- of the lines that it is about; '' where they could not be read
    code_lines  INTEGER NOT NULL,
    comment_id  BIGINT,                        -- NULL: it stands in the review's summary
    at          DOUBLE PRECISION NOT NULL
);
CREATE INDEX findings_pull ON findings (repo_id, number, state);
CREATE INDEX findings_comment ON findings (comment_id);

-- Findings that people said are no bug. They hold for the repository, also after their pull request.
CREATE TABLE dismissals (
    finding_id  TEXT PRIMARY KEY,              -- the finding that was dismissed
    repo_id     BIGINT NOT NULL REFERENCES repos (id),
    number      BIGINT NOT NULL,               -- its pull request
    path        TEXT NOT NULL,
    line        INTEGER NOT NULL,              -- then
    body        TEXT NOT NULL,
    code_sha256 TEXT NOT NULL,                 -- as in findings, like the next two
    code_lines  INTEGER NOT NULL,
    severity    TEXT NOT NULL CHECK (severity IN ('critical', 'major', 'minor', 'nit')),
    login       TEXT NOT NULL,                 -- who said so
    why         TEXT NOT NULL,                 -- '': they gave no reason
    source      TEXT NOT NULL,                 -- what they said it with: a repetition is the same dismissal
    at          DOUBLE PRECISION NOT NULL
);
CREATE INDEX dismissals_repo ON dismissals (repo_id, at);

-- Commits that GitHub has made and signed in the place of ours.
CREATE TABLE signed_commits (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    commit_sha TEXT NOT NULL,                  -- ours
    signed_sha TEXT NOT NULL,                  -- GitHub's: the same tree
    at         DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, commit_sha)
);

-- Where turns run. --------------------------------------------------------------------------------------------------

-- A row is written before there is anything to find.
CREATE TABLE environments (
    id           TEXT PRIMARY KEY,             -- the key under which its provider finds it
    session_id   TEXT NOT NULL REFERENCES sessions (id),
    turn         INTEGER NOT NULL,             -- which uses it, or used it last
    state        TEXT NOT NULL CHECK (state IN ('used', 'kept', 'ending')),
    made_of      TEXT NOT NULL,                -- digest of what was asked for: another wish needs another environment
    prepared     INTEGER NOT NULL DEFAULT 0,   -- the checkout was made for the present turn
    setup_sha256 TEXT,                         -- of the setup commands that have succeeded in it
    kept_until   DOUBLE PRECISION,
    updated_at   DOUBLE PRECISION NOT NULL,
    -- the agent's, or a fresh one for the declared checks
    purpose      TEXT NOT NULL DEFAULT 'work' CHECK (purpose IN ('work', 'checks')),
    -- JSON: what lay in the agent's home before one came; NULL: nobody looked
    home         TEXT,
    bound_to     TEXT                          -- the replica's data directory that it lies in; NULL: all reach it
);
CREATE INDEX environments_session ON environments (session_id, state);

-- What the disk of an environment says if it is the newest: two for a moment.
CREATE TABLE environment_marks (
    environment_id TEXT NOT NULL,
    mark           TEXT NOT NULL,
    PRIMARY KEY (environment_id, mark)
);

-- The account in a cloud that all replicas share: one row.
CREATE TABLE cloud (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    instance TEXT NOT NULL,                    -- tells our machines from those of other services in the account
    next_at  DOUBLE PRECISION NOT NULL         -- by the database's clock: no machine is created before that
);

-- Who has a place in its plan, and who waits for one.
CREATE TABLE cloud_places (
    key    TEXT PRIMARY KEY,                   -- the environment
    state  TEXT NOT NULL CHECK (state IN ('waiting', 'promised', 'held')),
    ahead  INTEGER NOT NULL CHECK (ahead IN (0, 1)),
    number BIGINT NOT NULL,                    -- the order in the line
    holder TEXT NOT NULL                       -- the replica, whose death ends a wait and a promise
);

-- A repository's default branch after its setup and before any agent. The row is there before its snapshot is, and
-- goes after it.
CREATE TABLE snapshots (
    name         TEXT PRIMARY KEY,             -- what the cloud knows it by, also while it is being made
    repo_id      BIGINT NOT NULL,
    template     TEXT NOT NULL,                -- "": the operator's
    setup_sha256 TEXT NOT NULL,                -- of the setup commands that have run in it
    setup        TEXT NOT NULL,                -- JSON: those commands
    egress       TEXT NOT NULL,                -- JSON: hosts that they may reach
    registries   TEXT NOT NULL DEFAULT '[]',   -- JSON: registries that they may read
    commit_sha   TEXT NOT NULL,                -- what is checked out in it
    branch       TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('making', 'ready', 'condemned')),
    snapshot_id  TEXT,                         -- NULL until it was taken
    shallow      TEXT NOT NULL DEFAULT '[]',   -- JSON: where the history in it ends
    attempts     INTEGER NOT NULL DEFAULT 0,
    created_at   DOUBLE PRECISION NOT NULL
);
CREATE INDEX snapshots_repo ON snapshots (repo_id, state);

-- What an environment uses while a turn works in it.
CREATE TABLE samples (
    session_id   TEXT NOT NULL,
    turn         INTEGER NOT NULL,
    at           DOUBLE PRECISION NOT NULL,
    cpu_percent  DOUBLE PRECISION NOT NULL,    -- of one CPU: two busy ones are 200
    memory_bytes BIGINT NOT NULL,
    disk_bytes   BIGINT NOT NULL,
    PRIMARY KEY (session_id, turn, at)
);

-- How long a machine that is paid for has run for a turn.
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
CREATE INDEX machine_runs_began ON machine_runs (began_at);
CREATE INDEX machine_runs_environment ON machine_runs (environment_id, ended_at);

-- Files, where the data directory is only one machine's copy of them (PostgreSQL). ---------------------------------

CREATE TABLE files (
    name    TEXT PRIMARY KEY,                  -- the path below the data directory
    version TEXT NOT NULL,                     -- whose chunks count; others are of a save that was interrupted
    size    BIGINT NOT NULL,
    sha256  TEXT NOT NULL,
    at      DOUBLE PRECISION NOT NULL
);

CREATE TABLE file_chunks (
    version TEXT NOT NULL,                     -- begins with the second of the save
    n       INTEGER NOT NULL,
    body    TEXT NOT NULL,                     -- base64 of the compressed bytes
    PRIMARY KEY (version, n)
);

-- The gateway to the model, and money. ------------------------------------------------------------------------------

CREATE TABLE gateway_tokens (
    token_sha256    TEXT PRIMARY KEY,
    session_id      TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    installation_id BIGINT NOT NULL,
    model           TEXT NOT NULL,
    fallback        TEXT,                      -- a second model that the turn may ask
    budget_usd      DOUBLE PRECISION NOT NULL,
    max_requests    INTEGER NOT NULL,
    requests        INTEGER NOT NULL DEFAULT 0,
    concurrency     INTEGER NOT NULL,
    expires_at      DOUBLE PRECISION NOT NULL,
    revoked_at      DOUBLE PRECISION,
    created_at      DOUBLE PRECISION NOT NULL,
    repo_id         BIGINT NOT NULL DEFAULT 0, -- who pays beside the installation; 0: nobody we know
    user_id         BIGINT NOT NULL DEFAULT 0,
    refused         TEXT,                      -- why a request with it was last refused for good
    registries      TEXT                       -- JSON: the registries that it opens; NULL: it opens the model
);
CREATE INDEX gateway_tokens_turn ON gateway_tokens (session_id, turn);

-- One row for each call of an MCP tool that an agent made through the gateway.
CREATE TABLE tool_calls (
    id          TEXT PRIMARY KEY,
    session_id  TEXT NOT NULL,
    turn        INTEGER NOT NULL,
    server      TEXT NOT NULL,
    tool        TEXT NOT NULL,
    approval_id TEXT UNIQUE,                   -- the yes that it used up
    state       TEXT NOT NULL CHECK (state IN ('open', 'ok', 'failed', 'refused')),
    began_at    DOUBLE PRECISION NOT NULL,
    ended_at    DOUBLE PRECISION,
    bytes       BIGINT NOT NULL DEFAULT 0      -- of the result
);
CREATE INDEX tool_calls_turn ON tool_calls (session_id, turn);

-- What a turn's environment has got through the gateway from registries.
CREATE TABLE fetched_packages (
    session_id TEXT NOT NULL,
    turn       INTEGER NOT NULL,
    registry   TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    TEXT NOT NULL,
    downloads  INTEGER NOT NULL,
    bytes      BIGINT NOT NULL,
    from_cache INTEGER NOT NULL,
    at         DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, turn, registry, name, version)
);

-- One row for each request at the model.
CREATE TABLE spend (
    id                 TEXT PRIMARY KEY,
    session_id         TEXT NOT NULL,
    turn               INTEGER NOT NULL,
    installation_id    BIGINT NOT NULL,
    model              TEXT NOT NULL,
    state              TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'abandoned')),
    reserved_usd       DOUBLE PRECISION NOT NULL,
    cost_usd           DOUBLE PRECISION NOT NULL DEFAULT 0,
    input_tokens       BIGINT NOT NULL DEFAULT 0,
    output_tokens      BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens  BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    status             INTEGER,                -- the provider's HTTP status
    at                 DOUBLE PRECISION NOT NULL,
    repo_id            BIGINT NOT NULL DEFAULT 0, -- who pays beside the installation; 0: nobody we know
    user_id            BIGINT NOT NULL DEFAULT 0,
    unconfirmed_usd    DOUBLE PRECISION NOT NULL DEFAULT 0, -- what it may have cost beside, at most: nobody saw its end
    replica            TEXT,                   -- which sees its end; NULL: the only service
    question           TEXT                    -- asked beside the work; NULL: the work itself
);
CREATE INDEX spend_at ON spend (at);
CREATE INDEX spend_open ON spend (at) WHERE state = 'reserved';
CREATE INDEX spend_turn ON spend (session_id, turn);

-- What each payer has spent a day, added up in the transaction that settles a request.
CREATE TABLE spend_days (
    payer           TEXT NOT NULL CHECK (payer IN ('installation_id', 'repo_id', 'user_id')),
    number          BIGINT NOT NULL,
    day             BIGINT NOT NULL,           -- of UTC, since 1970
    cost_usd        DOUBLE PRECISION NOT NULL,
    unconfirmed_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
    PRIMARY KEY (payer, number, day)
);

-- What each turn with an agent cost and took once it had ended, for estimates of later ones.
CREATE TABLE turn_figures (
    session_id      TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    repo_id         BIGINT NOT NULL,
    installation_id BIGINT NOT NULL,
    private         INTEGER NOT NULL,          -- whether its repository was: others may not see its figures
    kind            TEXT NOT NULL,
    usd             DOUBLE PRECISION NOT NULL, -- at the model, with what is not confirmed
    seconds         DOUBLE PRECISION NOT NULL, -- from its start to its end
    at              DOUBLE PRECISION NOT NULL, -- its end
    held_usd        INTEGER,                   -- stayed within its estimate; NULL: it had none
    held_seconds    INTEGER,
    PRIMARY KEY (session_id, turn)
);
CREATE INDEX turn_figures_account ON turn_figures (installation_id, kind, private, at);
CREATE INDEX turn_figures_all ON turn_figures (kind, private, at);
CREATE INDEX turn_figures_judged ON turn_figures (at) WHERE held_usd IS NOT NULL;
CREATE INDEX turn_figures_repo ON turn_figures (repo_id, kind, at);

-- What people have added to the budget of a session.
CREATE TABLE raises (
    source     TEXT PRIMARY KEY,               -- what asked for it: asked twice it is one
    session_id TEXT NOT NULL REFERENCES sessions (id),
    usd        DOUBLE PRECISION NOT NULL CHECK (usd > 0),
    login      TEXT NOT NULL,
    at         DOUBLE PRECISION NOT NULL
);
CREATE INDEX raises_session ON raises (session_id);

-- Secrets, and who has signed in to the pages. ----------------------------------------------------------------------

CREATE TABLE credentials (
    name            TEXT NOT NULL,
    installation_id BIGINT NOT NULL,
    ciphertext      TEXT NOT NULL,
    updated_at      DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (name, installation_id)
);

-- Registries and servers that an account's owner has named, or the operator for all (0). Secrets are in credentials, as
-- "purpose:name".
CREATE TABLE outside_services (
    installation_id BIGINT NOT NULL,
    purpose         TEXT NOT NULL CHECK (purpose IN ('registry', 'mcp', 'receiver')),
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL,
    address         TEXT NOT NULL,
    scope           TEXT NOT NULL,
    options         TEXT NOT NULL,             -- JSON
    credential      TEXT NOT NULL CHECK (credential IN ('none', 'basic', 'bearer', 'header', 'signature')),
    credential_name TEXT NOT NULL,             -- the user, or the header's name
    stored_by       TEXT NOT NULL,
    stored_at       DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (installation_id, purpose, name)
);

-- What receivers hear of turns. A row is written with what it tells.
CREATE TABLE bulletins (
    id              TEXT PRIMARY KEY,          -- follows from receiver and event: told twice is one bulletin
    installation_id BIGINT NOT NULL,           -- of the receiver, as in outside_services
    receiver        TEXT NOT NULL,
    event           TEXT NOT NULL CHECK (event IN ('ended', 'asks', 'over_budget')),
    session_id      TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    asks            TEXT,                      -- the kind of approval that waits
    body            TEXT,                      -- JSON: as it was sent first; NULL: it was not tried yet
    state           TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'given_up')),
    tries           INTEGER NOT NULL DEFAULT 0, -- that failed
    problem         TEXT,                      -- what was wrong with the last one, in words
    at              DOUBLE PRECISION NOT NULL,
    next_at         DOUBLE PRECISION NOT NULL  -- it is not tried before
);
CREATE INDEX bulletins_waiting ON bulletins (installation_id, receiver, at) WHERE state = 'waiting';

-- Known by the digest of a cookie, which nobody who reads the store can use.
CREATE TABLE visits (
    mark_sha256 TEXT PRIMARY KEY,
    user_id     BIGINT NOT NULL,
    login       TEXT NOT NULL,
    began_at    DOUBLE PRECISION NOT NULL,
    ends_at     DOUBLE PRECISION NOT NULL
);
CREATE INDEX visits_ends ON visits (ends_at);

-- A public link to a session, known by the digest of its token.
CREATE TABLE shares (
    token_sha256 TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES sessions (id),
    made_by      TEXT NOT NULL,
    made_by_id   BIGINT NOT NULL,
    of_private   INTEGER NOT NULL,             -- confirmed for a private repository
    made_at      DOUBLE PRECISION NOT NULL,
    ends_at      DOUBLE PRECISION NOT NULL
);
CREATE INDEX shares_session ON shares (session_id);

-- What an account's owners let programs ask for in their name, known by the digest of a secret. A name is never used
-- again, because the audit trail tells tokens apart by it.
CREATE TABLE api_tokens (
    id              TEXT PRIMARY KEY,
    secret_sha256   TEXT NOT NULL UNIQUE,
    installation_id BIGINT NOT NULL,
    name            TEXT NOT NULL,
    made_by         TEXT NOT NULL,             -- the requester of all that it starts
    made_by_id      BIGINT NOT NULL,
    repositories    TEXT NOT NULL,             -- JSON: [{"id", "name"}]
    kinds           TEXT NOT NULL,             -- JSON: the kinds of turns that it may start
    may_answer      INTEGER NOT NULL,          -- approvals
    budget_usd      DOUBLE PRECISION NOT NULL, -- for all of its turns together
    made_at         DOUBLE PRECISION NOT NULL,
    ends_at         DOUBLE PRECISION NOT NULL,
    revoked_at      DOUBLE PRECISION,
    used_at         DOUBLE PRECISION,
    UNIQUE (installation_id, name)
);

-- What was asked with a token; the source is that of its turn or message.
CREATE TABLE api_requests (
    source   TEXT PRIMARY KEY,
    token_id TEXT NOT NULL REFERENCES api_tokens (id),
    at       DOUBLE PRECISION NOT NULL
);
CREATE INDEX api_requests_token ON api_requests (token_id);

-- The replicas that live; used on PostgreSQL. Who has no row writes nothing. ------------------------------------------

CREATE TABLE replicas (
    id         TEXT PRIMARY KEY,               -- new at each start; also the executor of the engine
    home       TEXT NOT NULL UNIQUE,           -- its data directory, which one process at a time holds
    host       TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    beat       BIGINT NOT NULL,                -- counts up while it lives
    beat_at    DOUBLE PRECISION NOT NULL,      -- by the database's clock; to show, never to judge
    leads      INTEGER NOT NULL CHECK (leads IN (0, 1))
);
CREATE UNIQUE INDEX replicas_leader ON replicas (leads) WHERE leads = 1;

-- The operator: requests of the command line, switches, and who did what. -------------------------------------------

CREATE TABLE requests (
    id         TEXT PRIMARY KEY,               -- from the command line to the running service
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed')),
    answer     TEXT,
    created_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE switches (
    name   TEXT PRIMARY KEY CHECK (name IN ('paused')),
    set_by TEXT NOT NULL,
    set_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE audit (
    id      TEXT PRIMARY KEY,
    at      DOUBLE PRECISION NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT
);
CREATE INDEX audit_at ON audit (at);
