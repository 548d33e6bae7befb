-- The inputs of a job, in the order in which they were given, from a position on.
SELECT i.input_id, i.fields AS fields, i.status, i.attempt_count, i.next_retry_at, i.s3_path, i.is_reused, i.error_message,
       i.lease_owner, i.lease_until, i.result AS result, i.created_at, i.claimed_at, i.settled_at
FROM export_job_input AS i
WHERE i.job_id = :job AND i.input_id > :after AND (:status IS NULL OR i.status = :status)
ORDER BY i.input_id
LIMIT :limit
