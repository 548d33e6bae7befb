-- Those of a job's inputs that can be driven again.
SELECT i.input_id AS id
FROM export_job_input AS i
WHERE i.job_id = :job AND i.input_id > :after AND i.status IN ('DLQ', 'CANCELLED')
ORDER BY i.input_id
LIMIT :limit
