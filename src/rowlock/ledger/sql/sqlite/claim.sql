-- Claims the first records of one flow: high priority first, then oldest. The write lock is held.
-- A flow that its breaker has paused is open to the one instance that probes it.
UPDATE processing_queue
SET status = 'processing', ready = 0, holder = :holder, token = token + 1, attempt = attempt + 1,
    claimed_at = ledger_time(), started = 0, progress = NULL
WHERE id IN (
    SELECT id FROM processing_queue
    WHERE ready AND flow_name = :flow
      AND EXISTS (SELECT 1 FROM flows f WHERE f.flow_name = :flow AND (f.state <> 'paused' OR f.prober = :holder))
      AND EXISTS (SELECT 1 FROM service_instances i
                  WHERE i.id = :holder AND i.state = 'active' AND i.expires_at > ledger_time())
    ORDER BY -priority, id
    LIMIT :limit
)
RETURNING id, token, flow_name, record_key, payload, attempt, deaths, priority, created_at
