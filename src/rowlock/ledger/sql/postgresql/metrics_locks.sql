-- The leases that are held, longest first, and how many there are: names may be many, so only the first are shown.
SELECT lock_name, max(extract(epoch FROM rowlock.ledger_time() - acquired_at))::float8 AS held_seconds,
       sum(count(*)) OVER ()::bigint AS held
FROM rowlock.service_locks
WHERE holder IS NOT NULL AND expires_at > rowlock.ledger_time()
GROUP BY lock_name
ORDER BY held_seconds DESC
LIMIT %(limit)s
