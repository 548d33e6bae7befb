-- What the probe found, for whoever reads why the flow is paused; nobody probes any more.
UPDATE rowlock.flows SET reason = %(reason)s, prober = NULL, updated_at = rowlock.ledger_time()
WHERE flow_name = %(flow)s AND prober = %(instance)s
