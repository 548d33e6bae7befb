-- A limit as it was last declared.
SELECT limit_name, rate, interval_seconds, burst, concurrency, declared_by
FROM rowlock.limits WHERE limit_name = %(name)s
