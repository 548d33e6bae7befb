-- One record, wherever it is.
SELECT id, token, holder, flow_name, record_key, status, ready, priority, attempt, deaths, redrives, started,
       progress, created_at, run_at, claimed_at, NULL AS settled_at, payload AS payload,
       NULL AS result, NULL AS reason, NULL AS fingerprint
FROM processing_queue WHERE id = :id
UNION ALL
SELECT id, token, holder, flow_name, record_key, status, false, priority, attempt, deaths, redrives, false,
       NULL, created_at, NULL, claimed_at, settled_at, payload, result, reason, fingerprint
FROM processing_history WHERE id = :id
