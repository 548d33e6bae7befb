-- Instances of a name, newest first: a name may be used again by every restart.
SELECT id, state IN ('active', 'draining') AND expires_at > ledger_time() AS alive
FROM service_instances
WHERE name = :name
ORDER BY id DESC
LIMIT 100
