-- Cancels a live record. One that runs now is revoked: the token rises, and its handler's result is refused.
INSERT INTO processing_history
    (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
     status, flow_name, record_key, payload, reason)
SELECT id, token + 1, holder, created_at, claimed_at, ledger_time(), attempt, priority, deaths, redrives,
       'cancelled', flow_name, record_key, payload, :reason
FROM processing_queue WHERE id = :id
RETURNING id
