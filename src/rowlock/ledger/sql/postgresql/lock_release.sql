-- Gives a lease back. The row stays and its token rises, so that whatever was sent under the old one is refused.
-- No row: the token is stale. A release whose reply was lost finds what it did the first time.
-- Its commit need not wait for the disk: a taker's commit, which does, comes after it in the log; and a release that
-- a crash undoes leaves a lease that runs out by itself.
WITH held AS MATERIALIZED (
    SELECT l.token, l.holder, l.acquired_at, l.expires_at
    FROM rowlock.service_locks AS l
    WHERE l.lock_name = %(name)s AND l.slot = %(slot)s AND l.token = %(token)s AND l.holder IS NOT NULL
    FOR UPDATE
), moment AS MATERIALIZED (
    SELECT rowlock.ledger_time() AS now, set_config('synchronous_commit', 'off', true) FROM held
), freed AS (
    UPDATE rowlock.service_locks AS l
    SET token = held.token + 1, holder = NULL, request = NULL, note = NULL, expires_at = moment.now
    FROM held, moment
    WHERE l.lock_name = %(name)s AND l.slot = %(slot)s
), ended AS (
    INSERT INTO rowlock.lock_holdings (lock_name, slot, token, holder, acquired_at, ended_at, ended)
    SELECT %(name)s, %(slot)s, held.token, held.holder, held.acquired_at, least(held.expires_at, moment.now),
           CASE WHEN held.expires_at <= moment.now THEN 'expired' ELSE 'released' END
    FROM held, moment
    RETURNING ended
)
SELECT ended,
       (SELECT pg_notify(%(channel)s, w.ticket::text)::text
        FROM rowlock.lock_waiters AS w
        WHERE w.lock_name = %(name)s AND w.expires_at > rowlock.ledger_time()
        ORDER BY w.ticket LIMIT 1) AS told
FROM ended
UNION ALL
SELECT h.ended, NULL FROM rowlock.lock_holdings AS h
WHERE h.lock_name = %(name)s AND h.slot = %(slot)s AND h.token = %(token)s AND h.ended = 'released'
