-- Schedules: the last tick of each that has been dealt with. Whoever moves it on enqueues the tick's record in the same
-- transaction, so that no tick is twice, whoever is alive.
CREATE TABLE rowlock.schedules (
    schedule_name  text COLLATE "C" PRIMARY KEY,
    flow_name      text COLLATE "C" NOT NULL,
    cron           text NOT NULL,
    tz             text NOT NULL,
    last_tick      timestamptz NOT NULL,
    ticks          bigint NOT NULL DEFAULT 0,
    gaps           bigint NOT NULL DEFAULT 0,
    instance_id    bigint,
    updated_at     timestamptz NOT NULL
) WITH (fillfactor = 50);
