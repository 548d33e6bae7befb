-- Leaves the line. It may be the one that was told of a release: then the next one has to be.
WITH gone AS (
    DELETE FROM rowlock.lock_waiters WHERE ticket = %(ticket)s RETURNING lock_name, ticket
)
SELECT (SELECT pg_notify(%(channel)s, w.ticket::text)::text
        FROM rowlock.lock_waiters AS w
        WHERE w.lock_name = gone.lock_name AND w.ticket > gone.ticket AND w.expires_at > rowlock.ledger_time()
        ORDER BY w.ticket LIMIT 1) AS told
FROM gone
