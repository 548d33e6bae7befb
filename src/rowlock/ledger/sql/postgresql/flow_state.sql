-- Pauses, resumes or drains a flow, with the reason a person will read.
UPDATE rowlock.flows
SET state = %(state)s, reason = %(reason)s, updated_at = rowlock.ledger_time()
WHERE flow_name = %(flow)s
RETURNING flow_name, pg_notify(%(channel)s, flow_name)::text AS woken
