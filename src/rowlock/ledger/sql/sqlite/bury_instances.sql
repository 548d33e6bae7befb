-- Instances that missed their heartbeat for one lease time are dead.
UPDATE service_instances
SET state = 'dead', ended_at = ledger_time(),
    ended_reason = coalesce(ended_reason, 'no heartbeat for ' || lease_seconds || ' s')
WHERE state IN ('active', 'draining') AND expires_at <= ledger_time()
RETURNING id
