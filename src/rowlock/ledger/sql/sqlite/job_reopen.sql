-- A re-driven input opens its job again.
UPDATE export_job
SET dead = dead - :dead, cancelled = cancelled - :cancelled, revision = revision + 1, completed_at = NULL, error_message = NULL,
    status = CASE WHEN started_at IS NULL THEN 'SUBMITTED' ELSE 'RUNNING' END
WHERE job_id = :job
