-- A schedule as its program declares it. One that is new, or has other ticks than before, begins now: what came before
-- was never its.
INSERT INTO schedules (schedule_name, flow_name, cron, tz, last_tick, updated_at)
VALUES (:name, :flow, :cron, :tz, ledger_time(), ledger_time())
ON CONFLICT (schedule_name) DO UPDATE
SET flow_name = excluded.flow_name, cron = excluded.cron, tz = excluded.tz, updated_at = excluded.updated_at,
    last_tick = CASE WHEN schedules.cron = excluded.cron AND schedules.tz = excluded.tz THEN schedules.last_tick
                     ELSE max(schedules.last_tick, excluded.last_tick) END
RETURNING last_tick
