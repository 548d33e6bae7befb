-- A new instance; its id is new at every start.
INSERT INTO service_instances
    (name, hostname, pid, version, roles, lease_seconds, started_at, heartbeat_at, expires_at)
SELECT :name, :hostname, :pid, :version, :roles, :lease, now, now,
       now + :lease
FROM (SELECT ledger_time() AS now) AS t
RETURNING id, started_at AS now
