-- Those of a job's inputs that are not settled.
SELECT id FROM rowlock.processing_queue WHERE job_id = %(job)s ORDER BY id LIMIT %(limit)s
