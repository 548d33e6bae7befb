-- One statement renews everything that an instance holds. What is not returned has been lost: its token is stale,
-- or its time was up before we asked.
UPDATE rowlock.service_locks AS l
SET renewed_at = rowlock.ledger_time(), holder = %(holder)s,
    expires_at = rowlock.ledger_time() + l.ttl_seconds * interval '1 second'
FROM unnest(%(names)b::text[], %(slots)b::smallint[], %(tokens)b::bigint[]) AS k (lock_name, slot, token)
WHERE l.lock_name = k.lock_name AND l.slot = k.slot AND l.token = k.token
  AND l.holder IS NOT NULL AND l.expires_at > rowlock.ledger_time()
RETURNING l.lock_name, l.slot
