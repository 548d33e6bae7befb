-- One job with its counts. What is settled is kept in its row; what runs or waits is bounded by the fleet, and counted.
SELECT j.job_id, j.job_key, j.exporter, j.status, j.policy, j.priority, j.requested_at, j.requested_by, j.started_at,
       j.completed_at, j.deadline_at, j.total_inputs, j.done, j.dead, j.cancelled, j.reused, j.error_message, j.ends, j.revision,
       j.webhook_url,
       (SELECT count(*) FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'processing') AS running,
       (SELECT count(*) FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'retry_wait') AS retry_wait
FROM rowlock.export_job AS j
WHERE j.job_key = %(key)s
