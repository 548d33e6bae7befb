-- Every limit: what it allows, how far ahead it is reserved, how many of its slots are in use, how many wait for one.
SELECT l.limit_name, l.rate, l.burst, l.concurrency, l.reserved, l.declared_by, l.declared_at,
       greatest(0, extract(epoch FROM l.next_at - rowlock.ledger_time()))::float8 AS wait_seconds,
       extract(epoch FROM rowlock.ledger_time() - l.asked_at)::float8 AS asked_seconds,
       (SELECT count(*) FROM rowlock.service_locks AS s
        WHERE s.lock_name = 'limit:' || l.limit_name AND s.holder IS NOT NULL
          AND s.expires_at > rowlock.ledger_time()) AS in_use,
       (SELECT count(*) FROM rowlock.lock_waiters AS w
        WHERE w.lock_name = 'limit:' || l.limit_name AND w.expires_at > rowlock.ledger_time()) AS waiting
FROM rowlock.limits AS l
WHERE %(name)s::text IS NULL OR l.limit_name = %(name)s
ORDER BY l.limit_name
