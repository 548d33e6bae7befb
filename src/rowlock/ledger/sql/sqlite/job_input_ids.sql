-- Those of a job's inputs that can be driven again, if they have this status and their error contains this text.
SELECT i.input_id AS id
FROM export_job_input AS i
WHERE i.job_id = :job AND i.input_id > :after AND i.status IN ('DLQ', 'CANCELLED')
  AND (:status IS NULL OR i.status = :status) AND (:error IS NULL OR instr(i.error_message, :error) > 0)
ORDER BY i.input_id
LIMIT :limit
