-- How many dead letters a filter names: the dry run of a re-drive.
SELECT count(*) AS records
FROM processing_history
WHERE status = 'dead'
  AND (:flow IS NULL OR flow_name = :flow)
  AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
