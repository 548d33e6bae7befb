-- Settled records, newest first, a page at a time.
SELECT id, flow_name, record_key, status, priority, attempt, deaths, holder, NULL AS progress, created_at,
       NULL AS run_at, settled_at, reason
FROM processing_history
WHERE id < :before
  AND (:flow IS NULL OR flow_name = :flow)
  AND (:status IS NULL OR status = :status)
ORDER BY id DESC
LIMIT :limit
