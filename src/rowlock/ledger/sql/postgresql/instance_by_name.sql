-- Instances of a name, newest first: a name may be used again by every restart.
SELECT id, state IN ('active', 'draining') AND expires_at > rowlock.ledger_time() AS alive
FROM rowlock.service_instances
WHERE name = %(name)s
ORDER BY id DESC
LIMIT 100
