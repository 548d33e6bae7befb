-- Moves a schedule on to a tick. No row: another instance has done it, or another version of the program has other ticks.
UPDATE schedules
SET last_tick = :tick, ticks = ticks + :fired, gaps = gaps + :missed, instance_id = :instance,
    updated_at = ledger_time()
WHERE schedule_name = :name AND cron = :cron AND tz = :tz AND last_tick < :tick
RETURNING schedule_name
