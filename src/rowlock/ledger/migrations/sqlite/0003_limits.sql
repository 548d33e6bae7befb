-- Budgets that a whole fleet shares, and breakers that pause a flow which fails.

-- One row a limit. `next_at` is the next free moment: a use that starts later than now has reserved it. The last two
-- columns are what the latest reservation got, so that one statement both takes and tells.
CREATE TABLE limits (
    limit_name        TEXT PRIMARY KEY,
    rate              TEXT,
    interval_seconds  REAL,
    burst             INTEGER NOT NULL DEFAULT 1,
    concurrency       INTEGER,
    next_at           REAL NOT NULL,
    reserved          INTEGER NOT NULL DEFAULT 0,
    declared_by       INTEGER,
    declared_at       REAL NOT NULL,
    asked_at          REAL,
    got               INTEGER NOT NULL DEFAULT 0
);

-- Which limit a flow starts within; and which instance may try a few records of a flow that its breaker has paused.
ALTER TABLE flows ADD COLUMN limit_name TEXT;
ALTER TABLE flows ADD COLUMN prober INTEGER;

-- A breaker that is open. No row: it is closed.
CREATE TABLE flow_breakers (
    flow_name      TEXT PRIMARY KEY,
    state          TEXT NOT NULL CHECK (state IN ('open', 'probing')),
    trips          INTEGER NOT NULL DEFAULT 1,
    pause_seconds  REAL NOT NULL,
    opened_at      REAL NOT NULL,
    probe_at       REAL NOT NULL
);

-- How attempts ended of late, counted in small pieces of time, for flows that have a breaker; an empty fingerprint
-- stands for those that completed.
CREATE TABLE flow_outcomes (
    flow_name    TEXT NOT NULL,
    piece        REAL NOT NULL,
    fingerprint  TEXT NOT NULL,
    example      TEXT,
    attempts     INTEGER NOT NULL,
    PRIMARY KEY (flow_name, piece, fingerprint)
);
