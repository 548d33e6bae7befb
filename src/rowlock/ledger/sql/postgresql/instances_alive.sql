-- Instances whose lease runs, and what they say they do.
SELECT id, name, roles, state
FROM rowlock.service_instances
WHERE state IN ('active', 'draining') AND expires_at > rowlock.ledger_time()
ORDER BY id
