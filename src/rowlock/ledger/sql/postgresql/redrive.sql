-- Dead or cancelled records become pending again, under the same id and key, with fresh attempts. What they went
-- through stays in record_attempts; the token goes on rising. A job's inputs open it again.
WITH back AS (
    DELETE FROM rowlock.processing_history
    WHERE id = ANY(%(ids)b::bigint[]) AND status IN ('dead', 'cancelled')
    RETURNING *
), input AS (
    SELECT b.id, b.status, j.job_id
    FROM back AS b
    JOIN rowlock.export_job AS j
         ON b.flow_name = 'export.' || j.exporter AND j.job_key = split_part(b.record_key, '/', 1)
), queued AS (
    INSERT INTO rowlock.processing_queue
        (id, token, created_at, run_at, attempt, priority, deaths, redrives, ready, status, flow_name,
         record_key, payload, job_id)
    SELECT id, token + 1, created_at, rowlock.ledger_time(), 0, priority, 0, redrives + 1, true, 'pending', flow_name,
           record_key, payload, (SELECT i.job_id FROM input AS i WHERE i.id = back.id)
    FROM back
    RETURNING id, flow_name
), logged AS (
    INSERT INTO rowlock.record_attempts (record_id, token, attempt, outcome, message, instance_id, ended_at)
    SELECT id, token + 1, attempt, 'redriven', 'was ' || status || coalesce(': ' || reason, ''), NULL,
           rowlock.ledger_time()
    FROM back
), reopened AS MATERIALIZED (
    SELECT rowlock.reopen_job(job_id, count(*) FILTER (WHERE status = 'dead'),
                              count(*) FILTER (WHERE status = 'cancelled')) AS again
    FROM input GROUP BY job_id ORDER BY job_id
)
SELECT id, (SELECT count(again) FROM reopened) AS jobs, pg_notify(%(channel)s, flow_name)::text AS woken FROM queued
