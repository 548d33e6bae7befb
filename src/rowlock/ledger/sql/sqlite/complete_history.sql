-- First half of a completion: the record enters the history if the token is right.
INSERT INTO processing_history
    (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
     status, flow_name, record_key, payload, result)
SELECT id, token, holder, created_at, claimed_at, ledger_time(), attempt, priority, deaths, redrives,
       'completed', flow_name, record_key, payload, :result
FROM processing_queue WHERE id = :id AND token = :token
