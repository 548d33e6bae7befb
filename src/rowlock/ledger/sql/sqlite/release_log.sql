-- Keeps a handler's reason for its delay, if the token is right.
INSERT INTO record_attempts (record_id, token, attempt, outcome, message, instance_id, started_at, ended_at)
SELECT id, token, attempt, 'postponed', :reason, :holder, claimed_at, ledger_time()
FROM processing_queue WHERE id = :id AND token = :token AND :reason IS NOT NULL
