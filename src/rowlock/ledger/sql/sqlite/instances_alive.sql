-- Instances whose lease runs, and what they say they do.
SELECT id, name, roles, state
FROM service_instances
WHERE state IN ('active', 'draining') AND expires_at > ledger_time()
ORDER BY id
