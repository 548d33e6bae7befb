-- Every limit: what it allows, how far ahead it is reserved, how many of its slots are in use, how many wait for one.
SELECT l.limit_name, l.rate, l.burst, l.concurrency, l.reserved, l.declared_by, l.declared_at,
       max(0.0, l.next_at - ledger_time()) AS wait_seconds,
       ledger_time() - l.asked_at AS asked_seconds,
       (SELECT count(*) FROM service_locks AS s
        WHERE s.lock_name = 'limit:' || l.limit_name AND s.holder IS NOT NULL
          AND s.expires_at > ledger_time()) AS in_use,
       (SELECT count(*) FROM lock_waiters AS w
        WHERE w.lock_name = 'limit:' || l.limit_name AND w.expires_at > ledger_time()) AS waiting
FROM limits AS l
WHERE :name IS NULL OR l.limit_name = :name
ORDER BY l.limit_name
