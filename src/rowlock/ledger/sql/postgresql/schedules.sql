-- Every schedule, and the last tick that was dealt with.
SELECT schedule_name, flow_name, cron, tz, last_tick AS last_tick_at, ticks, gaps, instance_id, updated_at
FROM rowlock.schedules
ORDER BY schedule_name
