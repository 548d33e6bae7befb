-- The flow goes on. With an instance: only if it is the one that probes. Without: whoever probes, the code has no
-- breaker for this flow any more. A pause that is a person's has no breaker behind it.
UPDATE flows AS f
SET state = 'active', reason = NULL, prober = NULL, updated_at = ledger_time()
WHERE f.flow_name = :flow AND f.state = 'paused'
  AND (:instance IS NULL OR f.prober = :instance)
  AND EXISTS (SELECT 1 FROM flow_breakers AS b WHERE b.flow_name = f.flow_name)
RETURNING flow_name
