-- The probe failed: open again, for longer. Only its prober may say so.
UPDATE rowlock.flow_breakers AS b
SET state = 'open', trips = b.trips + 1, pause_seconds = least(b.pause_seconds * 2, %(longest)s),
    probe_at = rowlock.ledger_time() + least(b.pause_seconds * 2, %(longest)s) * interval '1 second'
FROM rowlock.flows AS f
WHERE b.flow_name = %(flow)s AND b.state = 'probing' AND f.flow_name = b.flow_name AND f.prober = %(instance)s
RETURNING b.pause_seconds, b.trips
