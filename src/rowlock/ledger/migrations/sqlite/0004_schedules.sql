-- Schedules: the last tick of each that has been dealt with. Whoever moves it on enqueues the tick's record in the same
-- transaction, so that no tick is twice, whoever is alive.
CREATE TABLE schedules (
    schedule_name  TEXT PRIMARY KEY,
    flow_name      TEXT NOT NULL,
    cron           TEXT NOT NULL,
    tz             TEXT NOT NULL,
    last_tick      REAL NOT NULL,
    ticks          INTEGER NOT NULL DEFAULT 0,
    gaps           INTEGER NOT NULL DEFAULT 0,
    instance_id    INTEGER,
    updated_at     REAL NOT NULL
);
