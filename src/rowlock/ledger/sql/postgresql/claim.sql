-- The claim of exchange.sql alone, for a worker that has nothing to settle: an idle one wakes sooner when the
-- history and its indexes are not even opened. A flow that its breaker has paused is open to the one that probes it.
WITH wanted AS MATERIALIZED (
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
SELECT id, token, flow_name, record_key, payload, attempt, deaths, priority, created_at FROM claimed
