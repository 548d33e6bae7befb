-- The record killed its worker too often, or on its last attempt. The token rises here too.
INSERT INTO processing_history
    (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
     status, flow_name, record_key, payload, reason, fingerprint)
SELECT id, token + 1, holder, created_at, claimed_at, ledger_time(), attempt, priority, :deaths, redrives,
       'dead', flow_name, record_key, payload,
       CASE WHEN :deaths >= :max_deaths THEN 'its workers died ' || :deaths || ' times'
            ELSE 'its worker died on the last of ' || attempt || ' attempts' END,
       'WorkerDied'
FROM processing_queue WHERE id = :id AND token = :token
