-- The breaker is open, and says when it will probe.
INSERT INTO flow_breakers (flow_name, state, pause_seconds, opened_at, probe_at)
VALUES (:flow, 'open', :pause, ledger_time(), ledger_time() + :pause)
ON CONFLICT (flow_name) DO UPDATE
SET state = 'open', trips = 1, pause_seconds = excluded.pause_seconds, opened_at = excluded.opened_at,
    probe_at = excluded.probe_at
