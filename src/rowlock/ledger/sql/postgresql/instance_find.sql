-- One instance, and how long its lease still runs (below zero: it has ended).
SELECT id, name, hostname, pid, version, roles, state, started_at, heartbeat_at, expires_at, ended_at, ended_reason,
       extract(epoch FROM rowlock.ledger_time() - heartbeat_at)::float8 AS heartbeat_age,
       extract(epoch FROM expires_at - rowlock.ledger_time())::float8 AS seconds_left
FROM rowlock.service_instances
WHERE id = %(id)s
