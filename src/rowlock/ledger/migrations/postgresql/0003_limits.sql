-- Budgets that a whole fleet shares, and breakers that pause a flow which fails.

-- One row a limit. `next_at` is the next free moment: a use that starts later than now has reserved it. The last two
-- columns are what the latest reservation got, so that one statement both takes and tells.
CREATE TABLE rowlock.limits (
    limit_name        text COLLATE "C" PRIMARY KEY,
    rate              text,
    interval_seconds  double precision,
    burst             integer NOT NULL DEFAULT 1,
    concurrency       integer,
    next_at           timestamptz NOT NULL,
    reserved          bigint NOT NULL DEFAULT 0,
    declared_by       bigint,
    declared_at       timestamptz NOT NULL,
    asked_at          timestamptz,
    got               integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Which limit a flow starts within; and which instance may try a few records of a flow that its breaker has paused.
ALTER TABLE rowlock.flows
    ADD COLUMN limit_name  text COLLATE "C",
    ADD COLUMN prober      bigint;

-- A breaker that is open. No row: it is closed.
CREATE TABLE rowlock.flow_breakers (
    flow_name      text COLLATE "C" PRIMARY KEY,
    state          text NOT NULL CHECK (state IN ('open', 'probing')),
    trips          integer NOT NULL DEFAULT 1,
    pause_seconds  double precision NOT NULL,
    opened_at      timestamptz NOT NULL,
    probe_at       timestamptz NOT NULL
);

-- How attempts ended of late, counted in small pieces of time, for flows that have a breaker; an empty fingerprint
-- stands for those that completed.
CREATE TABLE rowlock.flow_outcomes (
    flow_name    text COLLATE "C" NOT NULL,
    piece        double precision NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL,
    example      text,
    attempts     bigint NOT NULL,
    PRIMARY KEY (flow_name, piece, fingerprint)
) WITH (fillfactor = 50);
