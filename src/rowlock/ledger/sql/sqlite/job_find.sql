-- One job with its counts.
SELECT j.* FROM export_job_now AS j WHERE j.job_key = :key
