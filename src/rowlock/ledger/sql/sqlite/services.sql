-- Every service that has ever run, with its holder (nobody, when its lease is free) and who waits for it.
SELECT s.service_name, s.state, s.reason, s.every_seconds, s.runs, s.crashes, s.crashes_in_row, s.run_at,
       s.run_at + s.every_seconds - ledger_time() AS next_in, l.token, l.holder, i.name AS holder_name, i.state AS holder_state, l.expires_at - ledger_time() AS seconds_left,
       (SELECT count(*) FROM lock_waiters AS w WHERE w.lock_name = l.lock_name AND w.expires_at > ledger_time()) AS standby
FROM services AS s
LEFT JOIN service_locks AS l ON l.lock_name = 'service:' || s.service_name AND l.slot = 0
LEFT JOIN service_instances AS i ON i.id = l.holder
ORDER BY s.service_name
