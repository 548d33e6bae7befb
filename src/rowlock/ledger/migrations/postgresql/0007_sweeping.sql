-- What lost attempts leave in the storage is swept some time after the job's end; `swept` counts the ends for which that was ordered.
ALTER TABLE rowlock.export_job ADD COLUMN swept integer NOT NULL DEFAULT 0;
CREATE INDEX export_job_unswept ON rowlock.export_job (completed_at) WHERE swept < ends;

-- Who this ledger is, so that it never sweeps the files of another one that was given the same storage.
CREATE TABLE rowlock.ledger_identity (identity text NOT NULL);
INSERT INTO rowlock.ledger_identity VALUES (gen_random_uuid()::text);

-- Jobs as they are now. What is settled is kept in their rows; what runs or waits is bounded by the fleet, and counted.
-- A job runs from its first claim on, even if no handler has said so yet.
CREATE VIEW rowlock.export_job_now AS
SELECT j.job_id, j.job_key, j.exporter, CASE WHEN j.status = 'SUBMITTED' AND l.running + l.retry_wait > 0 THEN 'RUNNING' ELSE j.status END AS status,
       j.policy, j.priority, j.requested_at, j.requested_by, j.started_at, j.completed_at, j.deadline_at, j.total_inputs, j.done, j.dead,
       j.cancelled, j.reused, j.error_message, j.ends, j.revision, j.webhook_url, l.running, l.retry_wait
FROM rowlock.export_job AS j
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'processing') AS running,
           (SELECT count(*) FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'retry_wait') AS retry_wait
) AS l;
