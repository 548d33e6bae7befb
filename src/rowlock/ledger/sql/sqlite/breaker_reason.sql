-- What the probe found, for whoever reads why the flow is paused; nobody probes any more.
UPDATE flows SET reason = :reason, prober = NULL, updated_at = ledger_time()
WHERE flow_name = :flow AND prober = :instance
