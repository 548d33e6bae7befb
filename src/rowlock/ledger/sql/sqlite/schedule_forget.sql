-- A schedule that no program has any more.
DELETE FROM schedules WHERE schedule_name = :name RETURNING schedule_name
