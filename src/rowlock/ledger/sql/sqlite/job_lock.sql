-- Nothing to lock: a transaction has the write lock.
SELECT job_id FROM export_job WHERE job_id = :job
