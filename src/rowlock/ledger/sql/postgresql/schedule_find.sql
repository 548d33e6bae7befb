-- Where a schedule stands.
SELECT cron, tz, extract(epoch FROM last_tick)::float8 AS last_tick FROM rowlock.schedules WHERE schedule_name = %(name)s
