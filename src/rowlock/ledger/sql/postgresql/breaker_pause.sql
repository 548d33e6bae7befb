-- The breaker pauses its flow, if nobody else has said what the flow shall do.
UPDATE rowlock.flows
SET state = 'paused', reason = %(reason)s, prober = NULL, updated_at = rowlock.ledger_time()
WHERE flow_name = %(flow)s AND state = 'active'
RETURNING flow_name
