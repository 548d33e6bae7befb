-- A job that has ended claims nothing more: what waits is held back until somebody drives it again.
UPDATE processing_queue
SET ready = 0, run_at = 253370764800
WHERE job_id = :job AND holder IS NULL AND run_at < 253370764800
RETURNING id
