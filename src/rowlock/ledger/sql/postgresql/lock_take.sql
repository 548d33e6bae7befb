-- Takes a free slot of a named lease: one that nobody holds, or whose time is up. No row: all are held, or somebody
-- came before us. A row that is held is not even locked, so that contenders never stand in the way of its renewals.
-- A slot that carries our own request is ours already: the reply to an earlier try was lost.
WITH free AS MATERIALIZED (
    SELECT l.slot, l.token, l.holder, l.acquired_at, l.expires_at, l.request IS NOT DISTINCT FROM %(request)s AS mine
    FROM rowlock.service_locks AS l
    WHERE l.lock_name = %(name)s AND l.slot < %(slots)s
      AND (l.request = %(request)s
           OR ((l.holder IS NULL OR l.expires_at <= rowlock.ledger_time())
               AND NOT EXISTS (SELECT 1 FROM rowlock.lock_waiters AS w
                               WHERE w.lock_name = %(name)s AND w.ticket < %(ticket)s
                                 AND w.expires_at > rowlock.ledger_time())))
    ORDER BY l.request IS DISTINCT FROM %(request)s, l.slot
    LIMIT 1
    FOR UPDATE
), moment AS MATERIALIZED (
    SELECT rowlock.ledger_time() AS now FROM free  -- after the row was locked, however long that took
), taken AS (
    UPDATE rowlock.service_locks AS l
    SET token = CASE WHEN free.mine THEN l.token ELSE free.token + 1 END,
        acquired_at = CASE WHEN free.mine THEN l.acquired_at ELSE moment.now END,
        holder = %(holder)s, request = %(request)s, note = %(note)s, ttl_seconds = %(ttl)s,
        renewed_at = moment.now, expires_at = moment.now + %(ttl)s * interval '1 second'
    FROM free, moment
    WHERE l.lock_name = %(name)s AND l.slot = free.slot
    RETURNING l.slot, l.token
), ended AS (
    INSERT INTO rowlock.lock_holdings (lock_name, slot, token, holder, acquired_at, ended_at, ended, detail)
    SELECT %(name)s, slot, token, holder, acquired_at, expires_at, 'expired', 'taken over by instance ' || %(holder)s::bigint
    FROM free WHERE holder IS NOT NULL AND NOT mine
), served AS (
    DELETE FROM rowlock.lock_waiters WHERE ticket = %(ticket)s AND EXISTS (SELECT 1 FROM taken)
    RETURNING ticket
)
SELECT slot, token,
       -- More than one slot may be free: the next in line is told as well.
       (SELECT pg_notify(%(channel)s, w.ticket::text)::text
        FROM rowlock.lock_waiters AS w
        WHERE %(slots)s > 1 AND w.lock_name = %(name)s AND w.ticket > %(ticket)s
          AND w.expires_at > rowlock.ledger_time() AND EXISTS (SELECT 1 FROM served)
        ORDER BY w.ticket LIMIT 1) AS told
FROM taken
