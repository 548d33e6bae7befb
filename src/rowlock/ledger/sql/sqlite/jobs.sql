-- Jobs, newest first, from a position on.
SELECT j.job_id, j.job_key, j.exporter, j.status, j.policy, j.priority, j.requested_at, j.requested_by, j.started_at,
       j.completed_at, j.deadline_at, j.total_inputs, j.done, j.dead, j.cancelled, j.reused, j.error_message, j.ends, j.revision,
       j.webhook_url,
       (SELECT count(*) FROM processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'processing') AS running,
       (SELECT count(*) FROM processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'retry_wait') AS retry_wait
FROM export_job AS j
WHERE j.job_id < :before AND (:status IS NULL OR j.status = :status)
  AND (:exporter IS NULL OR j.exporter = :exporter)
ORDER BY j.job_id DESC
LIMIT :limit
