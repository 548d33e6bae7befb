-- The job's first input runs.
UPDATE export_job
SET status = 'RUNNING', started_at = ledger_time(), revision = revision + 1
WHERE job_key = :key AND status = 'SUBMITTED'
RETURNING job_id
