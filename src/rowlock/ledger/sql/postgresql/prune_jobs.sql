-- Forgets old jobs whose inputs have all been forgotten, and what happened to them.
WITH gone AS (
    DELETE FROM rowlock.export_job AS j
    WHERE j.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND j.told = j.ends
      AND j.completed_at < rowlock.ledger_time() - %(seconds)s * interval '1 second'
      AND NOT EXISTS (SELECT 1 FROM rowlock.export_job_input AS i WHERE i.job_id = j.job_id)
    RETURNING j.job_id
)
DELETE FROM rowlock.export_job_event WHERE job_id IN (SELECT job_id FROM gone)
