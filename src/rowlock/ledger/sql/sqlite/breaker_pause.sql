-- The breaker pauses its flow, if nobody else has said what the flow shall do.
UPDATE flows
SET state = 'paused', reason = :reason, prober = NULL, updated_at = ledger_time()
WHERE flow_name = :flow AND state = 'active'
RETURNING flow_name
