-- Settled inputs are counted in the transaction that settles them. A job that has ended stays as it ended.
UPDATE export_job
SET done = done + :done, dead = dead + :dead, cancelled = cancelled + :cancelled, reused = reused + :reused,
    revision = revision + 1, error_message = coalesce(error_message, :why),
    status = CASE WHEN status = 'SUBMITTED' THEN 'RUNNING' ELSE status END,
    started_at = coalesce(started_at, ledger_time())
WHERE job_id = :job
