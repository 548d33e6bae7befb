-- Who waits for a lease, in the order in which they will have it.
SELECT w.ticket, w.instance_id, i.name AS instance_name, w.since AS queued_at,
       extract(epoch FROM rowlock.ledger_time() - w.since)::float8 AS waited
FROM rowlock.lock_waiters AS w
LEFT JOIN rowlock.service_instances AS i ON i.id = w.instance_id
WHERE w.lock_name = %(name)s AND w.expires_at > rowlock.ledger_time()
ORDER BY w.ticket
