-- Jobs whose deadline has passed.
SELECT job_key FROM rowlock.export_job
WHERE status IN ('SUBMITTED', 'RUNNING') AND deadline_at <= rowlock.ledger_time()
