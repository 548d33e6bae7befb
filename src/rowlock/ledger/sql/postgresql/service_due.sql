-- Seconds until the service is due again: the rhythm goes on when another instance takes over.
SELECT extract(epoch FROM run_at + %(every)s * interval '1 second' - rowlock.ledger_time())::float8 AS seconds
FROM rowlock.services
WHERE service_name = %(service)s AND run_at IS NOT NULL
