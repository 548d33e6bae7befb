-- Takes a lease away from its holder, whoever that is: the token rises, so that nothing it still writes counts.
-- With a token: only if that is still the holding.
WITH held AS MATERIALIZED (
    SELECT l.slot, l.token, l.holder, l.acquired_at, l.expires_at
    FROM rowlock.service_locks AS l
    WHERE l.lock_name = %(name)s AND l.slot = %(slot)s AND l.holder IS NOT NULL
      AND (%(token)s::bigint IS NULL OR l.token = %(token)s)
    FOR UPDATE
), moment AS MATERIALIZED (
    SELECT rowlock.ledger_time() AS now FROM held
), freed AS (
    UPDATE rowlock.service_locks AS l
    SET token = held.token + 1, holder = NULL, request = NULL, note = NULL, expires_at = moment.now
    FROM held, moment
    WHERE l.lock_name = %(name)s AND l.slot = held.slot
), ended AS (
    INSERT INTO rowlock.lock_holdings (lock_name, slot, token, holder, acquired_at, ended_at, ended, detail)
    SELECT %(name)s, held.slot, held.token, held.holder, held.acquired_at, least(held.expires_at, moment.now),
           CASE WHEN held.expires_at <= moment.now THEN 'expired' ELSE 'forced' END, %(detail)s
    FROM held, moment
    RETURNING token, holder, ended
)
SELECT token, holder, ended,
       (SELECT pg_notify(%(channel)s, w.ticket::text)::text
        FROM rowlock.lock_waiters AS w
        WHERE w.lock_name = %(name)s AND w.expires_at > rowlock.ledger_time()
        ORDER BY w.ticket LIMIT 1) AS told
FROM ended
