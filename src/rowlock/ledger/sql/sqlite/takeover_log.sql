INSERT INTO record_attempts
    (record_id, token, attempt, outcome, error_type, message, fingerprint, instance_id, started_at, ended_at)
SELECT id, token, attempt, 'died', 'WorkerDied', 'instance ' || holder || ' (' || :instance_name || ') died',
       'WorkerDied', holder, claimed_at, ledger_time()
FROM processing_queue WHERE id = :id AND token = :token
