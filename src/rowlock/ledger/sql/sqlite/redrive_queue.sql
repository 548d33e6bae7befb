-- A dead or cancelled record becomes pending again, under the same id and key, with fresh attempts. What it went
-- through stays in record_attempts; the token goes on rising.
INSERT INTO processing_queue
    (id, token, created_at, run_at, attempt, priority, deaths, redrives, ready, status, flow_name, record_key, payload)
SELECT id, token + 1, created_at, ledger_time(), 0, priority, 0, redrives + 1, 1, 'pending', flow_name, record_key, payload
FROM processing_history WHERE id = :id AND status IN ('dead', 'cancelled')
RETURNING id
