-- Cancels live records. One that runs now is revoked: the token rises, and its handler's result is refused.
WITH gone AS (
    DELETE FROM rowlock.processing_queue WHERE id = ANY(%(ids)b::bigint[]) RETURNING *
), kept AS (
    INSERT INTO rowlock.processing_history
        (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
         status, flow_name, record_key, payload, reason)
    SELECT id, token + 1, holder, created_at, claimed_at, rowlock.ledger_time(), attempt, priority, deaths,
           redrives, 'cancelled', flow_name, record_key, payload, %(reason)s
    FROM gone
), counted AS MATERIALIZED (
    SELECT rowlock.count_job(job_id, 0, 0, count(*), 0, NULL) AS ended
    FROM gone WHERE job_id IS NOT NULL GROUP BY job_id ORDER BY job_id
)
SELECT id, (SELECT count(ended) FROM counted) AS jobs FROM gone
