-- The job's first input runs.
UPDATE rowlock.export_job
SET status = 'RUNNING', started_at = rowlock.ledger_time(), revision = revision + 1
WHERE job_key = %(key)s AND status = 'SUBMITTED'
RETURNING job_id
