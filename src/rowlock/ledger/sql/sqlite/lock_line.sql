-- Who waits for a lease, in the order in which they will have it.
SELECT w.ticket, w.instance_id, i.name AS instance_name, w.since AS queued_at, ledger_time() - w.since AS waited
FROM lock_waiters AS w
LEFT JOIN service_instances AS i ON i.id = w.instance_id
WHERE w.lock_name = :name AND w.expires_at > ledger_time()
ORDER BY w.ticket
