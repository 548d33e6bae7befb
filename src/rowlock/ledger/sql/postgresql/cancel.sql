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
)
SELECT id FROM gone
