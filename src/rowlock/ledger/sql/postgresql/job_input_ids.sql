-- Those of a job's inputs that can be driven again, if they have this status and their error contains this text.
SELECT i.input_id AS id
FROM rowlock.export_job_input AS i
WHERE i.job_id = %(job)s AND i.input_id > %(after)s AND i.status IN ('DLQ', 'CANCELLED')
  AND (%(status)s::text IS NULL OR i.status = %(status)s) AND (%(error)s::text IS NULL OR strpos(i.error_message, %(error)s) > 0)
ORDER BY i.input_id
LIMIT %(limit)s
