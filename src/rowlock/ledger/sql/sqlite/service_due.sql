-- Seconds until the service is due again: the rhythm goes on when another instance takes over.
SELECT run_at + :every - ledger_time() AS seconds
FROM services
WHERE service_name = :service AND run_at IS NOT NULL
