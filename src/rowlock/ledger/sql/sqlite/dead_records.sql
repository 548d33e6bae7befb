-- Dead letters, newest first, a page at a time.
SELECT id, flow_name, record_key, attempt, deaths, redrives, created_at, settled_at, reason, fingerprint
FROM processing_history
WHERE status = 'dead' AND id < :before
  AND (:flow IS NULL OR flow_name = :flow)
  AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
ORDER BY id DESC
LIMIT :limit
