-- Takes records from dead instances: the token rises, so that whatever their old holder still writes is refused.
-- A record that killed its worker too often, or on its last attempt, is dead. A first death may only have
-- been a neighbour's fault, so it spends no attempt; a suspect's counts only if it had really started.
-- SKIP LOCKED: a record that its old holder settles at this very moment is left to it.
WITH orphan AS MATERIALIZED (
    SELECT q.id, q.token, q.attempt, q.holder, q.started, i.name AS instance_name,
           CASE WHEN q.deaths = 0 OR q.started THEN q.deaths + 1 ELSE q.deaths END AS deaths,
           coalesce(f.max_deaths, 3) AS max_deaths, coalesce(f.max_attempts, 5) AS max_attempts
    FROM rowlock.processing_queue AS q
    JOIN rowlock.service_instances AS i ON i.id = q.holder
    LEFT JOIN rowlock.flows AS f ON f.flow_name = q.flow_name
    WHERE q.holder IS NOT NULL AND i.state IN ('dead', 'stopped')
    LIMIT %(limit)s
    FOR UPDATE OF q SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT *, deaths >= max_deaths OR (started AND attempt >= max_attempts) AS final FROM orphan
), returned AS (
    UPDATE rowlock.processing_queue AS q
    SET status = 'pending', ready = true, holder = NULL, token = q.token + 1, deaths = o.deaths,
        attempt = CASE WHEN o.started THEN q.attempt ELSE greatest(q.attempt - 1, 0) END, started = false
    FROM judged AS o
    WHERE q.id = ANY(ARRAY(SELECT id FROM orphan)) AND q.id = o.id AND q.token = o.token AND NOT o.final
    RETURNING q.id, q.flow_name, o.token, o.attempt, o.holder, q.claimed_at, o.instance_name
), gone AS (
    DELETE FROM rowlock.processing_queue AS q
    USING judged AS o
    WHERE q.id = ANY(ARRAY(SELECT id FROM orphan)) AND q.id = o.id AND q.token = o.token AND o.final
    RETURNING q.*, o.deaths AS all_deaths, o.max_deaths, o.instance_name
), kept AS (
    INSERT INTO rowlock.processing_history
        (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
         status, flow_name, record_key, payload, reason, fingerprint)
    SELECT id, token + 1, holder, created_at, claimed_at, rowlock.ledger_time(), attempt, priority, all_deaths,
           redrives, 'dead', flow_name, record_key, payload,
           CASE WHEN all_deaths >= max_deaths THEN 'its workers died ' || all_deaths || ' times'
                ELSE 'its worker died on the last of ' || attempt || ' attempts' END,
           'WorkerDied'
    FROM gone
), logged AS (
    INSERT INTO rowlock.record_attempts
        (record_id, token, attempt, outcome, error_type, message, fingerprint, instance_id, started_at, ended_at)
    SELECT id, token, attempt, 'died', 'WorkerDied', 'instance ' || holder || ' (' || instance_name || ') died',
           'WorkerDied', holder, claimed_at, rowlock.ledger_time()
    FROM (SELECT id, token, attempt, holder, claimed_at, instance_name FROM returned
          UNION ALL
          SELECT id, token, attempt, holder, claimed_at, instance_name FROM gone) AS t
), counted AS MATERIALIZED (
    SELECT rowlock.count_job(job_id, 0, count(*), 0, 0, min(record_key || ': its workers died')) AS ended
    FROM gone WHERE job_id IS NOT NULL GROUP BY job_id ORDER BY job_id
)
SELECT 'returned' AS fate, flow_name, count(*) AS records, pg_notify(%(channel)s, flow_name)::text AS woken
FROM returned GROUP BY flow_name
UNION ALL
SELECT 'dead', flow_name, count(*), (SELECT count(ended)::text FROM counted) FROM gone GROUP BY flow_name
