-- One instance as the list shows it, and how long its lease still runs (below zero: it has ended).
SELECT i.id, i.name, i.hostname, i.pid, i.version, i.roles,
       CASE WHEN i.state = 'active' AND ledger_time() > i.heartbeat_at + i.lease_seconds * 0.5
            THEN 'suspect' ELSE i.state END AS state,
       i.lease_seconds, i.started_at, i.heartbeat_at, i.expires_at, i.ended_at, i.ended_reason,
       ledger_time() - i.heartbeat_at AS heartbeat_age, i.expires_at - ledger_time() AS seconds_left,
       i.completed, i.failed, i.stale_refused, i.takeovers,
       (SELECT count(*) FROM processing_queue AS q WHERE q.holder = i.id) AS holds
FROM service_instances AS i
WHERE i.id = :id
