SELECT attempt, token, outcome, error_type, message, traceback, fingerprint, instance_id, started_at, ended_at
FROM record_attempts
WHERE record_id = :id
ORDER BY token
