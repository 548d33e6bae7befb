-- Jobs that have ended and whose inputs still wait to be claimed, or (cancelled ones) are live at all.
SELECT DISTINCT j.job_id, j.job_key, j.status
FROM rowlock.export_job AS j
JOIN rowlock.processing_queue AS q ON q.job_id = j.job_id
WHERE j.status = 'CANCELLED'
   OR (j.status IN ('COMPLETED', 'FAILED') AND q.holder IS NULL AND q.run_at < '9999-01-01')
