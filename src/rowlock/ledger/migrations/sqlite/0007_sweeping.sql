-- What lost attempts leave in the storage is swept some time after the job's end; `swept` counts the ends for which that was ordered.
ALTER TABLE export_job ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;
CREATE INDEX export_job_unswept ON export_job (completed_at) WHERE swept < ends;

-- Who this ledger is, so that it never sweeps the files of another one that was given the same storage.
CREATE TABLE ledger_identity (identity TEXT NOT NULL);
INSERT INTO ledger_identity VALUES (lower(hex(randomblob(16))));

-- A job is forgotten together with what happened to it.
CREATE TRIGGER export_job_forgotten AFTER DELETE ON export_job
BEGIN
    DELETE FROM export_job_event WHERE job_id = OLD.job_id;
END;

-- Jobs as they are now. What is settled is kept in their rows; what runs is bounded by the fleet, and counted. Of what waits
-- for a worker and what waits for another try, the one that is few is counted: the other is the rest, whatever the job's size.
-- A job runs from its first claim on, even if no handler has said so yet.
CREATE VIEW export_job_now AS
SELECT j.job_id, j.job_key, j.exporter, CASE WHEN j.status = 'SUBMITTED' AND j.running + j.retry_wait > 0 THEN 'RUNNING' ELSE j.status END AS status,
       j.policy, j.priority, j.requested_at, j.requested_by, j.started_at, j.completed_at, j.deadline_at, j.total_inputs, j.done, j.dead,
       j.cancelled, j.reused, j.error_message, j.ends, j.revision, j.webhook_url, j.running, j.retry_wait
FROM (
    SELECT l.*, CASE
        WHEN l.retrying <= 1000 THEN l.retrying
        WHEN (SELECT count(*) FROM (
                SELECT 1 FROM processing_queue AS q WHERE q.job_id = l.job_id AND q.status = 'pending' LIMIT 1001)) <= 1000
            THEN l.total_inputs - l.done - l.dead - l.cancelled - l.running
                 - (SELECT count(*) FROM processing_queue AS q WHERE q.job_id = l.job_id AND q.status = 'pending')
        ELSE (SELECT count(*) FROM processing_queue AS q WHERE q.job_id = l.job_id AND q.status = 'retry_wait') END AS retry_wait
    FROM (
        SELECT e.*,
               (SELECT count(*) FROM processing_queue AS q WHERE q.job_id = e.job_id AND q.status = 'processing') AS running,
               (SELECT count(*) FROM (
                    SELECT 1 FROM processing_queue AS q WHERE q.job_id = e.job_id AND q.status = 'retry_wait' LIMIT 1001)) AS retrying
        FROM export_job AS e
    ) AS l
) AS j;
