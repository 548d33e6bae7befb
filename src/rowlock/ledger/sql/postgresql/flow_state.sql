-- Pauses, resumes or drains a flow, with the reason a person will read. Whoever says so speaks for its breaker too.
UPDATE rowlock.flows
SET state = %(state)s, reason = %(reason)s, prober = NULL, updated_at = rowlock.ledger_time()
WHERE flow_name = %(flow)s
RETURNING flow_name, pg_notify(%(channel)s, flow_name)::text AS woken
