-- Keeps an attempt's error, if the token is right.
INSERT INTO record_attempts
    (record_id, token, attempt, outcome, error_type, message, traceback, fingerprint, instance_id, started_at, ended_at)
SELECT id, token, attempt, :outcome, :error_type, :message, :traceback, :fingerprint, :holder, claimed_at, ledger_time()
FROM processing_queue WHERE id = :id AND token = :token
