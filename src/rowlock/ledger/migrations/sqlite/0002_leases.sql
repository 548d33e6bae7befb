-- Leases that can be waited for, counted, explained and looked back on.

-- A lock is a lease with one slot; a budget of concurrent calls has several, each with a token of its own.
-- `request` is the acquisition's own number: it tells a take whose reply was lost from a rival's.
-- `last_commit` is the number of the last fenced transaction, so that one whose reply was lost can be re-read.
ALTER TABLE service_locks RENAME TO service_locks_before;
CREATE TABLE service_locks (
    lock_name    TEXT NOT NULL,
    slot         INTEGER NOT NULL DEFAULT 0,
    token        INTEGER NOT NULL,
    holder       INTEGER,
    acquired_at  REAL NOT NULL,
    renewed_at   REAL NOT NULL,
    expires_at   REAL NOT NULL,
    ttl_seconds  REAL NOT NULL DEFAULT 30,
    request      INTEGER,
    last_commit  INTEGER,
    note         TEXT,
    PRIMARY KEY (lock_name, slot)
);
INSERT INTO service_locks (lock_name, token, holder, acquired_at, renewed_at, expires_at)
SELECT lock_name, token, holder, acquired_at, renewed_at, expires_at FROM service_locks_before;
DROP TABLE service_locks_before;

-- Who waits for a lease, in order of arrival. A waiter that stops asking loses its place.
CREATE TABLE lock_waiters (
    ticket       INTEGER PRIMARY KEY AUTOINCREMENT,
    lock_name    TEXT NOT NULL,
    instance_id  INTEGER NOT NULL,
    since        REAL NOT NULL,
    expires_at   REAL NOT NULL
);
CREATE INDEX lock_waiters_queue ON lock_waiters (lock_name, ticket);

-- Every holding that has ended: who, from when to when, and how it ended. Rows are added, never changed, so that
-- "were there two holders?" can be answered after the fact.
CREATE TABLE lock_holdings (
    lock_name    TEXT NOT NULL,
    slot         INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    holder       INTEGER NOT NULL,
    acquired_at  REAL NOT NULL,
    ended_at     REAL NOT NULL,
    ended        TEXT NOT NULL CHECK (ended IN ('released', 'expired', 'forced')),
    detail       TEXT,
    PRIMARY KEY (lock_name, slot, token)
);
CREATE INDEX lock_holdings_ended ON lock_holdings (ended_at);

-- What a service does just now, written by whoever holds its lease.
CREATE TABLE services (
    service_name    TEXT PRIMARY KEY,
    token           INTEGER NOT NULL,
    instance_id     INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'crashed', 'stopped')),
    reason          TEXT,
    every_seconds   REAL,
    runs            INTEGER NOT NULL DEFAULT 0,
    crashes         INTEGER NOT NULL DEFAULT 0,
    crashes_in_row  INTEGER NOT NULL DEFAULT 0,
    run_at          REAL,
    updated_at      REAL NOT NULL
);
