-- Settles records that did not complete: later again (the token rises, so that a second settling of the same
-- attempt is refused), or dead. The error is kept under the attempt's own token.
WITH s AS MATERIALIZED (
    SELECT * FROM unnest(
        %(ids)b::bigint[], %(tokens)b::bigint[], %(final)s::boolean[], %(delays)s::float8[], %(reasons)s::text[],
        %(outcomes)s::text[], %(error_types)s::text[], %(messages)s::text[], %(tracebacks)s::text[],
        %(fingerprints)s::text[], %(deaths)s::int[]
    ) AS s (id, token, final, delay, reason, outcome, error_type, message, traceback, fingerprint, deaths)
), later AS (
    UPDATE rowlock.processing_queue AS q
    SET status = 'retry_wait', ready = false, holder = NULL, token = q.token + 1,
        deaths = q.deaths + s.deaths, run_at = rowlock.ledger_time() + s.delay * interval '1 second'
    FROM s
    WHERE q.id = ANY(%(ids)b::bigint[]) AND q.id = s.id AND q.token = s.token AND NOT s.final
    RETURNING q.id, s.token, q.attempt, q.claimed_at
), gone AS (
    DELETE FROM rowlock.processing_queue AS q
    USING s
    WHERE q.id = ANY(%(ids)b::bigint[]) AND q.id = s.id AND q.token = s.token AND s.final
    RETURNING q.*, s.reason, s.fingerprint, s.deaths AS more_deaths
), kept AS (
    INSERT INTO rowlock.processing_history
        (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
         status, flow_name, record_key, payload, reason, fingerprint)
    SELECT id, token, holder, created_at, claimed_at, rowlock.ledger_time(), attempt, priority,
           deaths + more_deaths, redrives, 'dead', flow_name, record_key, payload, reason, fingerprint
    FROM gone
), settled AS (
    SELECT id, token, attempt, claimed_at FROM later
    UNION ALL
    SELECT id, token, attempt, claimed_at FROM gone
), logged AS (
    INSERT INTO rowlock.record_attempts
        (record_id, token, attempt, outcome, error_type, message, traceback, fingerprint, instance_id,
         started_at, ended_at)
    SELECT s.id, s.token, t.attempt, s.outcome, s.error_type, s.message, s.traceback, s.fingerprint, %(holder)s,
           t.claimed_at, rowlock.ledger_time()
    FROM settled AS t JOIN s ON s.id = t.id
), counted AS MATERIALIZED (
    SELECT rowlock.count_job(job_id, 0, count(*), 0, 0, min(record_key || ': ' || reason)) AS ended
    FROM gone WHERE job_id IS NOT NULL GROUP BY job_id ORDER BY job_id
)
SELECT id, (SELECT count(ended) FROM counted) AS jobs FROM settled
