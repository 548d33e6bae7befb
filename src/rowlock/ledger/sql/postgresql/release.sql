-- Hands records back with their attempt unspent: at once, or after a delay. The token rises. A handler's reason
-- for its delay is kept.
WITH s AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)b::bigint[], %(tokens)b::bigint[], %(delays)s::float8[], %(reasons)s::text[])
        AS s (id, token, delay, reason)
), back AS (
    UPDATE rowlock.processing_queue AS q
    SET status = CASE WHEN s.delay > 0 THEN 'retry_wait' ELSE 'pending' END, ready = (s.delay <= 0),
        holder = NULL, token = q.token + 1, attempt = greatest(q.attempt - 1, 0), claimed_at = NULL,
        run_at = rowlock.ledger_time() + s.delay * interval '1 second'
    FROM s
    WHERE q.id = ANY(%(ids)b::bigint[]) AND q.id = s.id AND q.token = s.token
    RETURNING q.id, s.token, q.attempt + 1 AS attempt, s.reason
), logged AS (
    INSERT INTO rowlock.record_attempts (record_id, token, attempt, outcome, message, instance_id, ended_at)
    SELECT id, token, attempt, 'postponed', reason, %(holder)s, rowlock.ledger_time()
    FROM back WHERE reason IS NOT NULL
)
SELECT id FROM back
