-- Where a schedule stands.
SELECT cron, tz, last_tick FROM schedules WHERE schedule_name = :name
