-- Forgets old jobs whose inputs have all been forgotten; a trigger forgets what happened to them.
DELETE FROM export_job
WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND told = ends AND completed_at < ledger_time() - :seconds
  AND NOT EXISTS (SELECT 1 FROM export_job_input AS i WHERE i.job_id = export_job.job_id)
