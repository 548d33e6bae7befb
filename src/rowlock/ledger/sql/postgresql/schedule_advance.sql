-- Moves a schedule on to a tick. No row: another instance has done it, or another version of the program has other ticks.
UPDATE rowlock.schedules
SET last_tick = to_timestamp(%(tick)s), ticks = ticks + %(fired)s, gaps = gaps + %(missed)s,
    instance_id = %(instance)s, updated_at = rowlock.ledger_time()
WHERE schedule_name = %(name)s AND cron = %(cron)s AND tz = %(tz)s AND last_tick < to_timestamp(%(tick)s)
RETURNING schedule_name
