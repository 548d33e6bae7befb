-- A record that waits for its time may run now.
UPDATE rowlock.processing_queue
SET ready = true, status = 'pending', run_at = rowlock.ledger_time()
WHERE id = ANY(%(ids)b::bigint[]) AND NOT ready AND holder IS NULL
RETURNING id, pg_notify(%(channel)s, flow_name)::text AS woken
