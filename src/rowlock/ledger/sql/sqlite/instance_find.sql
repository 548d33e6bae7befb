-- One instance, and how long its lease still runs (below zero: it has ended).
SELECT id, name, hostname, pid, version, roles, state, started_at, heartbeat_at, expires_at, ended_at, ended_reason,
       ledger_time() - heartbeat_at AS heartbeat_age, expires_at - ledger_time() AS seconds_left
FROM service_instances
WHERE id = :id
