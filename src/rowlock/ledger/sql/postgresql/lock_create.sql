-- The rows of a lease that nobody has ever taken. They stay for ever, so that their tokens only rise.
INSERT INTO rowlock.service_locks (lock_name, slot, token, acquired_at, renewed_at, expires_at)
SELECT %(name)s, slot, 0, now, now, now
FROM generate_series(0, %(slots)s - 1) AS slot, (SELECT rowlock.ledger_time() AS now) AS t
ON CONFLICT (lock_name, slot) DO NOTHING
