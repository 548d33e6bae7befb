-- Jobs, newest first, from a position on.
SELECT j.*
FROM export_job_now AS j
WHERE j.job_id < :before AND (:status IS NULL OR j.status = :status)
  AND (:exporter IS NULL OR j.exporter = :exporter)
ORDER BY j.job_id DESC
LIMIT :limit
