-- A new instance; its id is new at every start.
INSERT INTO rowlock.service_instances
    (name, hostname, pid, version, roles, lease_seconds, started_at, heartbeat_at, expires_at)
SELECT %(name)s, %(hostname)s, %(pid)s, %(version)s, %(roles)s, %(lease)s, now, now,
       now + %(lease)s * interval '1 second'
FROM (SELECT rowlock.ledger_time() AS now) AS t
RETURNING id, extract(epoch FROM started_at)::float8 AS now
