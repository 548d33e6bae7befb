-- Jobs whose end has not been announced.
SELECT job_id, job_key, ends FROM export_job WHERE told < ends ORDER BY job_id LIMIT :limit
