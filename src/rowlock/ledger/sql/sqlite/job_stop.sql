-- The job ends before its inputs have: it was cancelled, or its time was up.
UPDATE export_job
SET status = :status, error_message = coalesce(error_message, :why), completed_at = ledger_time(),
    ends = ends + 1, revision = revision + 1
WHERE job_key = :key AND status IN ('SUBMITTED', 'RUNNING')
RETURNING job_id
