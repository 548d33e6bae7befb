-- One instance as the list shows it, and how long its lease still runs (below zero: it has ended).
SELECT i.id, i.name, i.hostname, i.pid, i.version, i.roles,
       CASE WHEN i.state = 'active' AND rowlock.ledger_time() > i.heartbeat_at + i.lease_seconds * 0.5 * interval '1 second'
            THEN 'suspect' ELSE i.state END AS state,
       i.lease_seconds, i.started_at, i.heartbeat_at, i.expires_at, i.ended_at, i.ended_reason,
       extract(epoch FROM rowlock.ledger_time() - i.heartbeat_at)::float8 AS heartbeat_age,
       extract(epoch FROM i.expires_at - rowlock.ledger_time())::float8 AS seconds_left,
       i.completed, i.failed, i.stale_refused, i.takeovers,
       (SELECT count(*) FROM rowlock.processing_queue AS q WHERE q.holder = i.id) AS holds
FROM rowlock.service_instances AS i
WHERE i.id = %(id)s
