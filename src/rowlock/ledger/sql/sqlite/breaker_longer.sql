-- The probe failed: open again, for longer. Only its prober may say so.
UPDATE flow_breakers
SET state = 'open', trips = trips + 1, pause_seconds = min(pause_seconds * 2, :longest),
    probe_at = ledger_time() + min(pause_seconds * 2, :longest)
WHERE flow_name = :flow AND state = 'probing'
  AND EXISTS (SELECT 1 FROM flows AS f WHERE f.flow_name = :flow AND f.prober = :instance)
RETURNING pause_seconds, trips
