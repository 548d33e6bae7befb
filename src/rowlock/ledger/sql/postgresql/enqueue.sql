-- Accepts the records of one flow whose keys are new, in the order given, and wakes idle workers.
-- Keys are inserted in key order, so that two enqueues with the same keys cannot deadlock.
-- A flow that is not known, or that drains, takes nothing: its state is returned, for the caller to say so.
-- A key that this same batch inserted before (its commit's reply was lost) counts as accepted.
WITH incoming AS MATERIALIZED (
    SELECT nextval('rowlock.processing_queue_id_seq') AS id, u.record_key, u.payload
    FROM unnest(%(keys)b::text[], %(payloads)b::text[]) AS u (record_key, payload)
    WHERE EXISTS (SELECT 1 FROM rowlock.flows WHERE flow_name = %(flow)s AND state <> 'draining')
), fresh AS (
    INSERT INTO rowlock.record_keys (flow_name, record_key, record_id, batch)
    SELECT %(flow)s, record_key, id, %(batch)s FROM incoming ORDER BY record_key COLLATE "C"
    ON CONFLICT (flow_name, record_key) DO NOTHING
    RETURNING record_id
), queued AS (
    INSERT INTO rowlock.processing_queue
        (id, flow_name, record_key, payload, priority, status, ready, created_at, run_at, job_id)
    SELECT i.id, %(flow)s, i.record_key, i.payload::json, %(priority)s, 'pending',
           due.run_at <= due.now, due.now, due.run_at, %(job)s::bigint
    FROM incoming i,
         (SELECT now, coalesce(%(run_at)s::timestamptz, now) AS run_at
          FROM (SELECT rowlock.ledger_time() AS now) AS t) AS due
    WHERE i.id IN (SELECT record_id FROM fresh)
    ORDER BY i.id
    RETURNING id
)
SELECT array_agg(id ORDER BY id) AS ids,
       (SELECT state FROM rowlock.flows WHERE flow_name = %(flow)s) AS state,
       CASE WHEN %(notify)s AND count(*) > 0 THEN pg_notify(%(channel)s, %(flow)s)::text END AS woken
FROM queued
