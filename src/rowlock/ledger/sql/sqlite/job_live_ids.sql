-- Those of a job's inputs that are not settled.
SELECT id FROM processing_queue WHERE job_id = :job ORDER BY id LIMIT :limit
