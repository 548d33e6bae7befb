-- Something happened to a job.
INSERT INTO export_job_event (job_id, happened_at, kind, detail) VALUES (:job, ledger_time(), :kind, :detail)
