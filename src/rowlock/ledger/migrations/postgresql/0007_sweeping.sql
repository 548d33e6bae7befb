-- What lost attempts leave in the storage is swept some time after the job's end; `swept` counts the ends for which that was ordered.
ALTER TABLE rowlock.export_job ADD COLUMN swept integer NOT NULL DEFAULT 0;
CREATE INDEX export_job_unswept ON rowlock.export_job (completed_at) WHERE swept < ends;

-- Who this ledger is, so that it never sweeps the files of another one that was given the same storage.
CREATE TABLE rowlock.ledger_identity (identity text NOT NULL);
INSERT INTO rowlock.ledger_identity VALUES (gen_random_uuid()::text);

-- Jobs as they are now. What is settled is kept in their rows; what runs is bounded by the fleet, and counted. Of what waits
-- for a worker and what waits for another try, the one that is few is counted: the other is the rest, whatever the job's size.
-- A job runs from its first claim on, even if no handler has said so yet.
CREATE VIEW rowlock.export_job_now AS
SELECT j.job_id, j.job_key, j.exporter, CASE WHEN j.status = 'SUBMITTED' AND l.running + w.retry_wait > 0 THEN 'RUNNING' ELSE j.status END AS status,
       j.policy, j.priority, j.requested_at, j.requested_by, j.started_at, j.completed_at, j.deadline_at, j.total_inputs, j.done, j.dead,
       j.cancelled, j.reused, j.error_message, j.ends, j.revision, j.webhook_url, l.running, w.retry_wait
FROM rowlock.export_job AS j
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'processing') AS running,
           (SELECT count(*) FROM (
                SELECT 1 FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'retry_wait' LIMIT 1001
            ) AS few) AS retrying
) AS l
CROSS JOIN LATERAL (
    SELECT CASE WHEN l.retrying <= 1000 THEN l.retrying ELSE (
        SELECT CASE
            WHEN p.pending <= 1000 THEN j.total_inputs - j.done - j.dead - j.cancelled - l.running - p.pending
            ELSE (SELECT count(*) FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'retry_wait') END
        FROM (SELECT count(*) AS pending FROM (
                SELECT 1 FROM rowlock.processing_queue AS q WHERE q.job_id = j.job_id AND q.status = 'pending' LIMIT 1001
            ) AS few) AS p
    ) END AS retry_wait
) AS w;

-- A field of an input as text. JSON may hold a zero byte, and no text can: then it is nothing, and not an error for
-- everybody who reads the view.
CREATE FUNCTION rowlock.field(payload json, name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN payload::text NOT LIKE '%\\u0000%' THEN payload->>name END
$$;
CREATE OR REPLACE VIEW rowlock.export_job_input AS
SELECT q.id AS input_id, j.job_id, j.job_key, rowlock.field(q.payload, 'indexKey') AS index_key, rowlock.field(q.payload, 'effectiveDate') AS effective_date,
       rowlock.field(q.payload, 'asofindicator') AS asof_indicator,
       CASE q.status WHEN 'pending' THEN 'PENDING' WHEN 'processing' THEN 'RUNNING' ELSE 'RETRY_WAIT' END AS status,
       q.attempt AS attempt_count, CASE WHEN q.status = 'retry_wait' THEN q.run_at END AS next_retry_at,
       NULL::text AS s3_path, false AS is_reused,
       (SELECT a.error_type || ': ' || a.message FROM rowlock.record_attempts AS a
        WHERE a.record_id = q.id ORDER BY a.token DESC LIMIT 1) AS error_message,
       q.holder AS lease_owner, i.expires_at AS lease_until,
       q.payload AS fields, NULL::json AS result, q.created_at, q.claimed_at, NULL::timestamptz AS settled_at
FROM rowlock.export_job AS j
JOIN rowlock.processing_queue AS q ON q.job_id = j.job_id
LEFT JOIN rowlock.service_instances AS i ON i.id = q.holder
UNION ALL
SELECT h.id, j.job_id, j.job_key, rowlock.field(h.payload, 'indexKey'), rowlock.field(h.payload, 'effectiveDate'), rowlock.field(h.payload, 'asofindicator'),
       CASE h.status WHEN 'completed' THEN 'SUCCEEDED' WHEN 'dead' THEN 'DLQ' ELSE 'CANCELLED' END, h.attempt, NULL,
       h.result->>'path', coalesce((h.result->>'reused')::boolean, false), h.reason, NULL, NULL,
       h.payload, h.result, h.created_at, h.claimed_at, h.settled_at
FROM rowlock.export_job AS j
JOIN rowlock.record_keys AS k
     ON k.flow_name = 'export.' || j.exporter AND k.record_key >= j.job_key || '/' AND k.record_key < j.job_key || '0'
JOIN rowlock.processing_history AS h ON h.id = k.record_id;
