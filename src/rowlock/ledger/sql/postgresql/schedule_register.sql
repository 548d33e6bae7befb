-- A schedule as its program declares it. One that is new, or has other ticks than before, begins now: what came before
-- was never its.
INSERT INTO rowlock.schedules AS s (schedule_name, flow_name, cron, tz, last_tick, updated_at)
SELECT %(name)s, %(flow)s, %(cron)s, %(tz)s, now, now FROM (SELECT rowlock.ledger_time() AS now) AS t
ON CONFLICT (schedule_name) DO UPDATE
SET flow_name = excluded.flow_name, cron = excluded.cron, tz = excluded.tz, updated_at = excluded.updated_at,
    last_tick = CASE WHEN s.cron = excluded.cron AND s.tz = excluded.tz THEN s.last_tick
                     ELSE greatest(s.last_tick, excluded.last_tick) END
RETURNING extract(epoch FROM last_tick)::float8 AS last_tick
