-- Records whose time has come join the ready ones.
WITH due AS MATERIALIZED (
    SELECT id FROM rowlock.processing_queue
    WHERE NOT ready AND holder IS NULL AND run_at <= rowlock.ledger_time()
    ORDER BY run_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), woken AS (
    UPDATE rowlock.processing_queue SET ready = true, status = 'pending'
    WHERE id = ANY(ARRAY(SELECT id FROM due))
    RETURNING flow_name
)
SELECT flow_name, count(*) AS records, pg_notify(%(channel)s, flow_name)::text AS woken
FROM woken GROUP BY flow_name
