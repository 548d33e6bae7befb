-- The dead letters that a filter names, oldest first, a page at a time.
SELECT id
FROM processing_history
WHERE status = 'dead' AND id > :after
  AND (:flow IS NULL OR flow_name = :flow)
  AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
ORDER BY id
LIMIT :limit
