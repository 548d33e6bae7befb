-- Named leases, slot by slot: those that somebody holds or waits for, or all of them, or one.
-- A holder is a suspect when it has missed a heartbeat and is not yet dead.
SELECT l.lock_name, l.slot, (SELECT count(*) FROM service_locks AS s WHERE s.lock_name = l.lock_name) AS slots, l.token,
       CASE WHEN l.holder IS NULL THEN 'free' WHEN l.expires_at <= ledger_time() THEN 'expired' ELSE 'held' END AS state,
       l.holder, i.name AS holder_name,
       CASE WHEN i.state = 'active' AND ledger_time() > i.heartbeat_at + i.lease_seconds * 0.5
            THEN 'suspect' ELSE i.state END AS holder_state,
       coalesce(i.state IN ('active', 'draining') AND i.expires_at > ledger_time(), 0) AS holder_alive,
       ledger_time() - i.heartbeat_at AS heartbeat_age,
       l.acquired_at, l.renewed_at, l.expires_at, l.ttl_seconds, l.note,
       ledger_time() - l.acquired_at AS held_for,
       l.expires_at - ledger_time() AS seconds_left,
       (SELECT count(*) FROM lock_waiters AS w
        WHERE w.lock_name = l.lock_name AND w.expires_at > ledger_time()) AS waiting
FROM service_locks AS l
LEFT JOIN service_instances AS i ON i.id = l.holder
WHERE (:name IS NULL OR l.lock_name = :name)
  AND (:everyone OR l.holder IS NOT NULL
       OR EXISTS (SELECT 1 FROM lock_waiters AS w WHERE w.lock_name = l.lock_name AND w.expires_at > ledger_time()))
ORDER BY l.lock_name, l.slot
LIMIT :limit
