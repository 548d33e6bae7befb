-- One statement renews everything that an instance holds. What is not returned has been lost: its token is stale,
-- or its time was up before we asked. A row that a fenced transaction has locked is not returned either: one that
-- takes long must not keep all the others, and the heartbeat, waiting.
WITH ours AS MATERIALIZED (
    SELECT l.lock_name, l.slot
    FROM unnest(%(names)b::text[], %(slots)b::smallint[], %(tokens)b::bigint[]) AS k (lock_name, slot, token)
    JOIN rowlock.service_locks AS l ON l.lock_name = k.lock_name AND l.slot = k.slot AND l.token = k.token
    WHERE l.holder IS NOT NULL AND l.expires_at > rowlock.ledger_time()
    FOR UPDATE OF l SKIP LOCKED
)
UPDATE rowlock.service_locks AS l
SET renewed_at = rowlock.ledger_time(), holder = %(holder)s,
    expires_at = rowlock.ledger_time() + l.ttl_seconds * interval '1 second'
FROM ours
WHERE l.lock_name = ours.lock_name AND l.slot = ours.slot
RETURNING l.lock_name, l.slot
