-- Jobs whose deadline has passed.
SELECT job_key FROM export_job
WHERE status IN ('SUBMITTED', 'RUNNING') AND deadline_at <= ledger_time()
