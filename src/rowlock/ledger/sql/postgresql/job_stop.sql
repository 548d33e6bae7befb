-- The job ends before its inputs have: it was cancelled, or its time was up.
UPDATE rowlock.export_job
SET status = %(status)s, error_message = coalesce(error_message, %(why)s), completed_at = rowlock.ledger_time(),
    ends = ends + 1, revision = revision + 1
WHERE job_key = %(key)s AND status IN ('SUBMITTED', 'RUNNING')
RETURNING job_id
