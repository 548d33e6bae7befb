-- The flow goes on. With an instance: only if it is the one that probes. Without: whoever probes, the code has no
-- breaker for this flow any more. A pause that is a person's has no breaker behind it.
UPDATE rowlock.flows AS f
SET state = 'active', reason = NULL, prober = NULL, updated_at = rowlock.ledger_time()
WHERE f.flow_name = %(flow)s AND f.state = 'paused'
  AND (%(instance)s::bigint IS NULL OR f.prober = %(instance)s)
  AND EXISTS (SELECT 1 FROM rowlock.flow_breakers AS b WHERE b.flow_name = f.flow_name)
RETURNING f.flow_name
