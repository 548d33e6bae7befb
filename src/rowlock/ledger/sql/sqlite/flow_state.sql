-- Pauses, resumes or drains a flow, with the reason a person will read. Whoever says so speaks for its breaker too.
UPDATE flows
SET state = :state, reason = :reason, prober = NULL, updated_at = ledger_time()
WHERE flow_name = :flow
RETURNING flow_name
