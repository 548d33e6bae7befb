-- The job that a live record is an input of, if any.
SELECT job_id, record_key FROM processing_queue WHERE id = :id AND job_id IS NOT NULL
