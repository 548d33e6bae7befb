-- The heart: flows, instances, leases, live records, their history, their keys and their attempts.

CREATE TABLE flows (
    flow_name     TEXT PRIMARY KEY,
    state         TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'draining')),
    reason        TEXT,
    max_attempts  INTEGER NOT NULL DEFAULT 5,
    max_deaths    INTEGER NOT NULL DEFAULT 3,
    updated_at    REAL NOT NULL
);

-- One row a process.
CREATE TABLE service_instances (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT NOT NULL,
    hostname       TEXT NOT NULL,
    pid            INTEGER NOT NULL,
    version        TEXT NOT NULL,
    roles          TEXT NOT NULL DEFAULT '',
    state          TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'draining', 'stopped', 'dead')),
    lease_seconds  REAL NOT NULL,
    started_at     REAL NOT NULL,
    heartbeat_at   REAL NOT NULL,
    expires_at     REAL NOT NULL,
    ended_at       REAL,
    ended_reason   TEXT,
    completed      INTEGER NOT NULL DEFAULT 0,
    failed         INTEGER NOT NULL DEFAULT 0,
    stale_refused  INTEGER NOT NULL DEFAULT 0,
    takeovers      INTEGER NOT NULL DEFAULT 0
);

-- Named leases. A released lease keeps its row, so that its token only ever rises.
CREATE TABLE service_locks (
    lock_name    TEXT PRIMARY KEY,
    token        INTEGER NOT NULL,
    holder       INTEGER,
    acquired_at  REAL NOT NULL,
    renewed_at   REAL NOT NULL,
    expires_at   REAL NOT NULL
);

-- Live records only.
CREATE TABLE processing_queue (
    id          INTEGER PRIMARY KEY,
    token       INTEGER NOT NULL DEFAULT 0,
    holder      INTEGER,
    created_at  REAL NOT NULL,
    run_at      REAL NOT NULL,
    claimed_at  REAL,
    progress    REAL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    priority    INTEGER NOT NULL DEFAULT 0,
    deaths      INTEGER NOT NULL DEFAULT 0,
    redrives    INTEGER NOT NULL DEFAULT 0,
    ready       INTEGER NOT NULL,
    started     INTEGER NOT NULL DEFAULT 0,
    status      TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'retry_wait')),
    flow_name   TEXT NOT NULL,
    record_key  TEXT NOT NULL,
    payload     TEXT NOT NULL
);

-- The claim reads this one, in the order it wants: high priority first, then oldest. Only what may run
-- now is in it: records that wait, run or are paused never stand in a claim's way.
CREATE INDEX processing_queue_ready ON processing_queue (flow_name, (-priority), id) WHERE ready;
-- What waits for its time.
CREATE INDEX processing_queue_waiting ON processing_queue (run_at) WHERE NOT ready AND holder IS NULL;
-- Who holds what: takeover, `rowlock instances`.
CREATE INDEX processing_queue_held ON processing_queue (holder) WHERE holder IS NOT NULL;

CREATE TABLE processing_history (
    id           INTEGER PRIMARY KEY,
    token        INTEGER NOT NULL,
    holder       INTEGER,
    created_at   REAL NOT NULL,
    claimed_at   REAL,
    settled_at   REAL NOT NULL,
    attempt      INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    deaths       INTEGER NOT NULL,
    redrives     INTEGER NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('completed', 'dead', 'cancelled')),
    flow_name    TEXT NOT NULL,
    record_key   TEXT NOT NULL,
    payload      TEXT NOT NULL,
    result       TEXT,
    reason       TEXT,
    fingerprint  TEXT
);

-- Pruning finds the old end here.
CREATE INDEX processing_history_settled ON processing_history (settled_at);
CREATE INDEX processing_history_dead ON processing_history (flow_name, id) WHERE status = 'dead';

-- One (flow, key) is accepted once, for as long as its history is kept. A table of its own: neither the
-- claim nor the settling has to touch a unique index over keys, and no move between tables opens a gap.
-- It also hands out the records' ids, which are never used again.
-- `batch` names the enqueue that inserted it, so that one whose commit was lost can be told from a rival.
CREATE TABLE record_keys (
    record_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    flow_name   TEXT NOT NULL,
    record_key  TEXT NOT NULL,
    batch       INTEGER NOT NULL,
    UNIQUE (flow_name, record_key)
);

-- Every attempt that did not complete, and every takeover, with its token.
CREATE TABLE record_attempts (
    record_id    INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    outcome      TEXT NOT NULL CHECK (outcome IN ('failed', 'timed_out', 'rejected', 'died', 'postponed', 'redriven')),
    error_type   TEXT,
    message      TEXT,
    traceback    TEXT,
    fingerprint  TEXT,
    instance_id  INTEGER,
    started_at   REAL,
    ended_at     REAL NOT NULL,
    PRIMARY KEY (record_id, token)
);
