-- Export jobs. A job's inputs are records of the flow export.EXPORTER, under keys that begin with the job's own: claimed,
-- retried and dead-lettered like any other. The job keeps its counts, so that nobody has to count.
ALTER TABLE processing_queue ADD COLUMN job_id INTEGER;
CREATE INDEX processing_queue_jobs ON processing_queue (job_id, status) WHERE job_id IS NOT NULL;

-- done, dead and cancelled are what has been settled; what is live stands in the queue.
-- `ends` counts how often the job has ended (a re-drive opens it again), `told` the ends that were announced.
CREATE TABLE export_job (
    job_id           INTEGER PRIMARY KEY AUTOINCREMENT,
    job_key          TEXT NOT NULL UNIQUE,
    exporter         TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('SUBMITTED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    policy           TEXT NOT NULL CHECK (policy IN ('fail_fast', 'continue')),
    priority         INTEGER NOT NULL,
    requested_at     REAL NOT NULL,
    requested_by     TEXT,
    started_at       REAL,
    completed_at     REAL,
    deadline_at      REAL,
    total_inputs     INTEGER NOT NULL,
    done             INTEGER NOT NULL DEFAULT 0,
    dead             INTEGER NOT NULL DEFAULT 0,
    cancelled        INTEGER NOT NULL DEFAULT 0,
    reused           INTEGER NOT NULL DEFAULT 0,
    error_message    TEXT,
    ends             INTEGER NOT NULL DEFAULT 0,
    told             INTEGER NOT NULL DEFAULT 0,
    revision         INTEGER NOT NULL DEFAULT 1,
    webhook_url      TEXT,
    idempotency_key  TEXT UNIQUE,
    body_hash        TEXT
);
CREATE INDEX export_job_open ON export_job (job_id) WHERE status IN ('SUBMITTED', 'RUNNING');
CREATE INDEX export_job_untold ON export_job (job_id) WHERE told < ends;

-- The newest usable file for each input, whichever job made it.
CREATE TABLE export_artifact (
    exporter      TEXT NOT NULL,
    artifact_key  TEXT NOT NULL,
    fields        TEXT NOT NULL,
    s3_path       TEXT NOT NULL,
    job_key       TEXT NOT NULL,
    record_id     INTEGER NOT NULL,
    token         INTEGER NOT NULL,
    row_count     INTEGER,
    byte_count    INTEGER NOT NULL,
    sha256        TEXT NOT NULL,
    generated_at  REAL NOT NULL,
    PRIMARY KEY (exporter, artifact_key)
);
CREATE INDEX export_artifact_generated ON export_artifact (generated_at DESC);

-- What happened to a job, for those who watch it.
CREATE TABLE export_job_event (
    event_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id       INTEGER NOT NULL,
    happened_at  REAL NOT NULL,
    kind         TEXT NOT NULL,
    detail       TEXT
);
CREATE INDEX export_job_event_job ON export_job_event (job_id, event_id);

-- The inputs, live and settled, as one table.
CREATE VIEW export_job_input AS
SELECT q.id AS input_id, j.job_id, j.job_key, json_extract(q.payload, '$.indexKey') AS index_key,
       json_extract(q.payload, '$.effectiveDate') AS effective_date,
       json_extract(q.payload, '$.asofindicator') AS asof_indicator,
       CASE q.status WHEN 'pending' THEN 'PENDING' WHEN 'processing' THEN 'RUNNING' ELSE 'RETRY_WAIT' END AS status,
       q.attempt AS attempt_count, CASE WHEN q.status = 'retry_wait' THEN q.run_at END AS next_retry_at,
       NULL AS s3_path, 0 AS is_reused,
       (SELECT a.error_type || ': ' || a.message FROM record_attempts AS a
        WHERE a.record_id = q.id ORDER BY a.token DESC LIMIT 1) AS error_message,
       q.holder AS lease_owner, i.expires_at AS lease_until,
       q.payload AS fields, NULL AS result, q.created_at, q.claimed_at, NULL AS settled_at
FROM export_job AS j
JOIN processing_queue AS q ON q.job_id = j.job_id
LEFT JOIN service_instances AS i ON i.id = q.holder
UNION ALL
SELECT h.id, j.job_id, j.job_key, json_extract(h.payload, '$.indexKey'), json_extract(h.payload, '$.effectiveDate'),
       json_extract(h.payload, '$.asofindicator'),
       CASE h.status WHEN 'completed' THEN 'SUCCEEDED' WHEN 'dead' THEN 'DLQ' ELSE 'CANCELLED' END, h.attempt, NULL,
       json_extract(h.result, '$.path'), coalesce(json_extract(h.result, '$.reused'), 0), h.reason, NULL, NULL,
       h.payload, h.result, h.created_at, h.claimed_at, h.settled_at
FROM export_job AS j
JOIN record_keys AS k
     ON k.flow_name = 'export.' || j.exporter AND k.record_key >= j.job_key || '/' AND k.record_key < j.job_key || '0'
JOIN processing_history AS h ON h.id = k.record_id;
