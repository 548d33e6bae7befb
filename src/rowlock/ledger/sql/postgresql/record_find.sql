-- One record, wherever it is.
SELECT id, token, holder, flow_name, record_key, status, ready, priority, attempt, deaths, redrives, started,
       progress, created_at, run_at, claimed_at, NULL::timestamptz AS settled_at, payload::text AS payload,
       NULL::text AS result, NULL::text AS reason, NULL::text AS fingerprint
FROM rowlock.processing_queue WHERE id = %(id)s
UNION ALL
SELECT id, token, holder, flow_name, record_key, status, false, priority, attempt, deaths, redrives, false,
       NULL, created_at, NULL, claimed_at, settled_at, payload::text, result::text, reason, fingerprint
FROM rowlock.processing_history WHERE id = %(id)s
