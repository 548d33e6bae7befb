-- Named leases, slot by slot: those that somebody holds or waits for, or all of them, or one.
-- A holder is a suspect when it has missed a heartbeat and is not yet dead.
SELECT l.lock_name, l.slot, (SELECT count(*) FROM rowlock.service_locks AS s WHERE s.lock_name = l.lock_name) AS slots, l.token,
       CASE WHEN l.holder IS NULL THEN 'free' WHEN l.expires_at <= t.now THEN 'expired' ELSE 'held' END AS state,
       l.holder, i.name AS holder_name,
       CASE WHEN i.state = 'active' AND t.now > i.heartbeat_at + i.lease_seconds * 0.5 * interval '1 second'
            THEN 'suspect' ELSE i.state END AS holder_state,
       coalesce(i.state IN ('active', 'draining') AND i.expires_at > t.now, false) AS holder_alive,
       extract(epoch FROM t.now - i.heartbeat_at)::float8 AS heartbeat_age,
       l.acquired_at, l.renewed_at, l.expires_at, l.ttl_seconds, l.note,
       extract(epoch FROM t.now - l.acquired_at)::float8 AS held_for,
       extract(epoch FROM l.expires_at - t.now)::float8 AS seconds_left,
       (SELECT count(*) FROM rowlock.lock_waiters AS w
        WHERE w.lock_name = l.lock_name AND w.expires_at > t.now) AS waiting
FROM rowlock.service_locks AS l
CROSS JOIN (SELECT rowlock.ledger_time() AS now) AS t
LEFT JOIN rowlock.service_instances AS i ON i.id = l.holder
WHERE (%(name)s::text IS NULL OR l.lock_name = %(name)s)
  AND (%(everyone)s OR l.holder IS NOT NULL
       OR EXISTS (SELECT 1 FROM rowlock.lock_waiters AS w WHERE w.lock_name = l.lock_name AND w.expires_at > t.now))
ORDER BY l.lock_name, l.slot
LIMIT %(limit)s
