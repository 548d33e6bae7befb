-- The job ends with this, if it has not ended before: at the first dead input, or with the last one.
UPDATE export_job
SET status = CASE WHEN dead > 0 THEN 'FAILED' WHEN cancelled > 0 THEN 'CANCELLED' ELSE 'COMPLETED' END,
    completed_at = ledger_time(), ends = ends + 1
WHERE job_id = :job AND status IN ('SUBMITTED', 'RUNNING')
  AND ((dead > 0 AND policy = 'fail_fast') OR done + dead + cancelled >= total_inputs)
RETURNING lower(status) AS kind
