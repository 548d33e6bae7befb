-- The breaker is open, and says when it will probe.
INSERT INTO rowlock.flow_breakers (flow_name, state, pause_seconds, opened_at, probe_at)
SELECT %(flow)s, 'open', %(pause)s, now, now + %(pause)s * interval '1 second'
FROM (SELECT rowlock.ledger_time() AS now) AS t
ON CONFLICT (flow_name) DO UPDATE
SET state = 'open', trips = 1, pause_seconds = excluded.pause_seconds, opened_at = excluded.opened_at,
    probe_at = excluded.probe_at
