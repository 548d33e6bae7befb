-- Hands records back with their attempt unspent: at once, or after a delay. The token rises.
UPDATE rowlock.processing_queue AS q
SET status = CASE WHEN s.delay > 0 THEN 'retry_wait' ELSE 'pending' END, ready = (s.delay <= 0),
    holder = NULL, token = q.token + 1, attempt = greatest(q.attempt - 1, 0), claimed_at = NULL,
    run_at = rowlock.ledger_time() + s.delay * interval '1 second'
FROM unnest(%(ids)b::bigint[], %(tokens)b::bigint[], %(delays)s::float8[]) AS s (id, token, delay)
WHERE q.id = ANY(%(ids)b::bigint[]) AND q.id = s.id AND q.token = s.token
RETURNING q.id
