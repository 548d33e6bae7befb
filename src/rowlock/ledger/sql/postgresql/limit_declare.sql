-- Makes a limit known. The last declaration counts, for everybody and at once; what is reserved stays reserved.
INSERT INTO rowlock.limits (limit_name, rate, interval_seconds, burst, concurrency, next_at, declared_by, declared_at)
SELECT %(name)s, %(rate)s, %(interval)s, %(burst)s, %(concurrency)s, now, %(instance)s, now
FROM (SELECT rowlock.ledger_time() AS now) AS t
ON CONFLICT (limit_name) DO UPDATE
SET rate = excluded.rate, interval_seconds = excluded.interval_seconds, burst = excluded.burst,
    concurrency = excluded.concurrency, declared_by = excluded.declared_by, declared_at = excluded.declared_at
