-- The hot path, in one statement and one commit: what this worker finished moves to the history,
-- what it has room for becomes its own.
-- Settling is fenced by the token alone: a status in that predicate makes stale statistics quadratic.
-- `= ANY(ARRAY(…))` claims no more than the limit, and never turns into a scan of the whole table.
-- The first row returned carries the ids that were settled, the others what was claimed.
WITH done AS (
    DELETE FROM rowlock.processing_queue AS q
    USING unnest(%(ids)b::bigint[], %(tokens)b::bigint[], %(results)b::text[]) AS s (id, token, result)
    WHERE q.id = ANY(%(ids)b::bigint[]) AND q.id = s.id AND q.token = s.token
    RETURNING q.id, q.token, q.holder, q.created_at, q.claimed_at, q.attempt, q.priority, q.deaths,
              q.redrives, q.flow_name, q.record_key, q.payload, s.result
), kept AS (
    INSERT INTO rowlock.processing_history
        (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
         status, flow_name, record_key, payload, result)
    SELECT id, token, holder, created_at, claimed_at, rowlock.ledger_time(), attempt, priority, deaths, redrives,
           'completed', flow_name, record_key, payload, result::json
    FROM done
), wanted AS MATERIALIZED (
    SELECT c.id
    FROM unnest(%(flows)b::text[], %(limits)b::int[], %(ranks)b::smallint[], %(afters)b::bigint[])
             AS w (flow_name, most, rank, after)
    JOIN rowlock.flows AS f ON f.flow_name = w.flow_name AND (f.state <> 'paused' OR f.prober = %(holder)s)
    CROSS JOIN LATERAL (
        SELECT q.id
        FROM rowlock.processing_queue AS q
        WHERE q.ready AND q.flow_name = w.flow_name AND (-q.priority, q.id) > (w.rank, w.after)
        ORDER BY -q.priority, q.id
        LIMIT w.most
        FOR UPDATE SKIP LOCKED
    ) AS c
    WHERE EXISTS (SELECT 1 FROM rowlock.service_instances AS i
                  WHERE i.id = %(holder)s AND i.state = 'active' AND i.expires_at > rowlock.ledger_time())
), claimed AS (
    UPDATE rowlock.processing_queue AS q
    SET status = 'processing', ready = false, holder = %(holder)s, token = q.token + 1,
        attempt = q.attempt + 1, claimed_at = rowlock.ledger_time(), started = false, progress = NULL
    WHERE q.id = ANY(ARRAY(SELECT id FROM wanted))
    RETURNING q.id, q.token, q.flow_name, q.record_key, q.payload::text AS payload, q.attempt, q.deaths,
              q.priority, q.created_at
)
SELECT (SELECT array_agg(id) FROM done) AS settled, NULL AS id, NULL AS token, NULL AS flow_name,
       NULL AS record_key, NULL AS payload, NULL AS attempt, NULL AS deaths, NULL AS priority, NULL AS created_at
UNION ALL
SELECT NULL, id, token, flow_name, record_key, payload, attempt, deaths, priority, created_at FROM claimed
