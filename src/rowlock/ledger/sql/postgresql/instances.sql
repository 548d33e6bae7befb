-- Every instance of late, with what it holds; `suspect` is one that has missed a heartbeat and is not yet dead.
SELECT i.id, i.name, i.hostname, i.pid, i.version, i.roles,
       CASE WHEN i.state IN ('active', 'draining') AND rowlock.ledger_time() > i.heartbeat_at + i.lease_seconds * 0.5 * interval '1 second'
            THEN 'suspect' ELSE i.state END AS state,
       i.lease_seconds, i.started_at, i.heartbeat_at, i.expires_at, i.ended_at, i.ended_reason,
       extract(epoch FROM rowlock.ledger_time() - i.heartbeat_at)::float8 AS heartbeat_age,
       i.completed, i.failed, i.stale_refused, i.takeovers,
       (SELECT count(*) FROM rowlock.processing_queue q WHERE q.holder = i.id) AS holds
FROM rowlock.service_instances AS i
WHERE %(everyone)s OR i.state IN ('active', 'draining')
   OR i.ended_at > rowlock.ledger_time() - interval '1 hour'
ORDER BY i.id DESC
LIMIT %(limit)s
