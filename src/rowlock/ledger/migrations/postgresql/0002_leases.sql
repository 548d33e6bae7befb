-- Leases that can be waited for, counted, explained and looked back on.

-- A lock is a lease with one slot; a budget of concurrent calls has several, each with a token of its own.
-- `request` is the acquisition's own number: it tells a take whose reply was lost from a rival's.
-- `last_commit` is the number of the last fenced transaction, so that one whose reply was lost can be re-read.
ALTER TABLE rowlock.service_locks DROP CONSTRAINT service_locks_pkey;
ALTER TABLE rowlock.service_locks
    ADD COLUMN slot         smallint NOT NULL DEFAULT 0,
    ADD COLUMN ttl_seconds  double precision NOT NULL DEFAULT 30,
    ADD COLUMN request      bigint,
    ADD COLUMN last_commit  bigint,
    ADD COLUMN note         text,
    ADD PRIMARY KEY (lock_name, slot);

-- Who waits for a lease, in order of arrival. A waiter that stops asking loses its place.
CREATE TABLE rowlock.lock_waiters (
    ticket       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lock_name    text COLLATE "C" NOT NULL,
    instance_id  bigint NOT NULL,
    since        timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX lock_waiters_queue ON rowlock.lock_waiters (lock_name, ticket);

-- Every holding that has ended: who, from when to when, and how it ended. Rows are added, never changed, so that
-- "were there two holders?" can be answered after the fact.
CREATE TABLE rowlock.lock_holdings (
    lock_name    text COLLATE "C" NOT NULL,
    slot         smallint NOT NULL,
    token        bigint NOT NULL,
    holder       bigint NOT NULL,
    acquired_at  timestamptz NOT NULL,
    ended_at     timestamptz NOT NULL,
    ended        text NOT NULL CHECK (ended IN ('released', 'expired', 'forced')),
    detail       text,
    PRIMARY KEY (lock_name, slot, token)
);
CREATE INDEX lock_holdings_ended ON rowlock.lock_holdings USING brin (ended_at) WITH (pages_per_range = 32);

-- What a service does just now, written by whoever holds its lease.
CREATE TABLE rowlock.services (
    service_name    text COLLATE "C" PRIMARY KEY,
    token           bigint NOT NULL,
    instance_id     bigint NOT NULL,
    state           text NOT NULL CHECK (state IN ('running', 'waiting', 'crashed', 'stopped')),
    reason          text,
    every_seconds   double precision,
    runs            bigint NOT NULL DEFAULT 0,
    crashes         bigint NOT NULL DEFAULT 0,
    crashes_in_row  integer NOT NULL DEFAULT 0,
    run_at          timestamptz,
    updated_at      timestamptz NOT NULL
) WITH (fillfactor = 50);
