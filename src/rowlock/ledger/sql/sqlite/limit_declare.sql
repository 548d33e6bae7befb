-- Makes a limit known. The last declaration counts, for everybody and at once; what is reserved stays reserved.
INSERT INTO limits (limit_name, rate, interval_seconds, burst, concurrency, next_at, declared_by, declared_at)
VALUES (:name, :rate, :interval, :burst, :concurrency, ledger_time(), :instance, ledger_time())
ON CONFLICT (limit_name) DO UPDATE
SET rate = excluded.rate, interval_seconds = excluded.interval_seconds, burst = excluded.burst,
    concurrency = excluded.concurrency, declared_by = excluded.declared_by, declared_at = excluded.declared_at
