-- Pauses, resumes or drains a flow, with the reason a person will read.
UPDATE flows
SET state = :state, reason = :reason, updated_at = ledger_time()
WHERE flow_name = :flow
RETURNING flow_name
