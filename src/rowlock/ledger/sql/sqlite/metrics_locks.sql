-- The leases that are held, longest first, and how many there are: names may be many, so only the first are shown.
SELECT lock_name, max(ledger_time() - acquired_at) AS held_seconds, sum(count(*)) OVER () AS held
FROM service_locks
WHERE holder IS NOT NULL AND expires_at > ledger_time()
GROUP BY lock_name
ORDER BY held_seconds DESC
LIMIT :limit
