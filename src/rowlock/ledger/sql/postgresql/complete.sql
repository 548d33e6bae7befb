-- Completes one record inside the transaction that carries its effects. No row returned: the token is stale.
-- From here to the commit the record is locked; should this client be stopped just now, the server ends the
-- transaction after one lease time, so that the record can be taken over.
-- A job's input is counted here, after its record is locked: whoever settles inputs takes the locks in this order.
WITH done AS (
    DELETE FROM rowlock.processing_queue WHERE id = %(id)s AND token = %(token)s RETURNING *
), kept AS (
    INSERT INTO rowlock.processing_history
        (id, token, holder, created_at, claimed_at, settled_at, attempt, priority, deaths, redrives,
         status, flow_name, record_key, payload, result)
    SELECT id, token, holder, created_at, claimed_at, rowlock.ledger_time(), attempt, priority, deaths, redrives,
           'completed', flow_name, record_key, payload, %(result)s::json
    FROM done
)
SELECT id, set_config('idle_in_transaction_session_timeout', %(lease_ms)s::text, true) AS guard,
       CASE WHEN job_id IS NOT NULL THEN
           rowlock.count_job(job_id, 1, 0, 0, coalesce((%(result)s::json->>'reused')::boolean, false)::int, NULL)
       END AS ended
FROM done
