-- Those of a job's inputs that can be driven again.
SELECT i.input_id AS id
FROM rowlock.export_job_input AS i
WHERE i.job_id = %(job)s AND i.input_id > %(after)s AND i.status IN ('DLQ', 'CANCELLED')
ORDER BY i.input_id
LIMIT %(limit)s
