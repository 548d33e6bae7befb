-- A job that has ended claims nothing more: what waits is held back until somebody drives it again.
UPDATE rowlock.processing_queue
SET ready = false, run_at = '9999-01-01'
WHERE job_id = %(job)s AND holder IS NULL AND run_at < '9999-01-01'
RETURNING id
