-- The job's key: the day, and its number.
UPDATE export_job
SET job_key = 'J' || strftime('%Y%m%d', requested_at, 'unixepoch') || '_' || printf('%06d', job_id)
WHERE job_id = :job
RETURNING job_id, job_key, requested_at
