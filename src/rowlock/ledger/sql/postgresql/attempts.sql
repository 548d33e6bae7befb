SELECT attempt, token, outcome, error_type, message, traceback, fingerprint, instance_id, started_at, ended_at
FROM rowlock.record_attempts
WHERE record_id = %(id)s
ORDER BY token
