-- Live records, newest first, a page at a time.
SELECT id, flow_name, record_key, status, priority, attempt, deaths, holder, progress, created_at, run_at,
       NULL AS settled_at, NULL AS reason
FROM processing_queue
WHERE id < :before
  AND (:flow IS NULL OR flow_name = :flow)
  AND (:status IS NULL OR status = :status)
ORDER BY id DESC
LIMIT :limit
