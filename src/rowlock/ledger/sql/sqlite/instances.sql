-- Every instance of late, with what it holds; `suspect` is one that has missed a heartbeat and is not yet dead.
SELECT i.id, i.name, i.hostname, i.pid, i.version, i.roles,
       CASE WHEN i.state IN ('active', 'draining') AND ledger_time() > i.heartbeat_at + i.lease_seconds * 0.5
            THEN 'suspect' ELSE i.state END AS state,
       i.lease_seconds, i.started_at, i.heartbeat_at, i.expires_at, i.ended_at, i.ended_reason,
       (ledger_time() - i.heartbeat_at) AS heartbeat_age,
       i.completed, i.failed, i.stale_refused, i.takeovers,
       (SELECT count(*) FROM processing_queue q WHERE q.holder = i.id) AS holds
FROM service_instances AS i
WHERE :everyone OR i.state IN ('active', 'draining')
   OR i.ended_at > ledger_time() - 3600
ORDER BY i.id DESC
LIMIT :limit
