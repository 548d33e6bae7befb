-- Dead or cancelled records become pending again, under the same id and key, with fresh attempts. What they went
-- through stays in record_attempts; the token goes on rising.
WITH back AS (
    DELETE FROM rowlock.processing_history
    WHERE id = ANY(%(ids)b::bigint[]) AND status IN ('dead', 'cancelled')
    RETURNING *
), queued AS (
    INSERT INTO rowlock.processing_queue
        (id, token, created_at, run_at, attempt, priority, deaths, redrives, ready, status, flow_name,
         record_key, payload)
    SELECT id, token + 1, created_at, rowlock.ledger_time(), 0, priority, 0, redrives + 1, true, 'pending', flow_name,
           record_key, payload
    FROM back
    RETURNING id, flow_name
), logged AS (
    INSERT INTO rowlock.record_attempts (record_id, token, attempt, outcome, message, instance_id, ended_at)
    SELECT id, token + 1, attempt, 'redriven', 'was ' || status || coalesce(': ' || reason, ''), NULL,
           rowlock.ledger_time()
    FROM back
)
SELECT id, pg_notify(%(channel)s, flow_name)::text AS woken FROM queued
