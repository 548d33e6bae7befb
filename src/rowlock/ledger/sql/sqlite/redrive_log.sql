INSERT INTO record_attempts (record_id, token, attempt, outcome, message, ended_at)
SELECT id, token + 1, attempt, 'redriven', 'was ' || status || coalesce(': ' || reason, ''), ledger_time()
FROM processing_history WHERE id = :id AND status IN ('dead', 'cancelled')
