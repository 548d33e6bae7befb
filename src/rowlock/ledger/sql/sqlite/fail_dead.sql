-- The record is dead, for this reason.
INSERT INTO processing_history
    (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
     status, flow_name, record_key, payload, reason, fingerprint)
SELECT id, token, holder, created_at, claimed_at, ledger_time(), attempt, priority, deaths + :deaths, redrives,
       'dead', flow_name, record_key, payload, :reason, :fingerprint
FROM processing_queue WHERE id = :id AND token = :token AND :final
