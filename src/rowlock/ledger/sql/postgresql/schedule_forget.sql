-- A schedule that no program has any more.
DELETE FROM rowlock.schedules WHERE schedule_name = %(name)s RETURNING schedule_name
