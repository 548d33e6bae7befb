-- Every service that has ever run, with its holder (nobody, when its lease is free) and who waits for it.
SELECT s.service_name, s.state, s.reason, s.every_seconds, s.runs, s.crashes, s.crashes_in_row, s.run_at,
       extract(epoch FROM s.run_at + s.every_seconds * interval '1 second' - rowlock.ledger_time())::float8 AS next_in, l.token, l.holder, i.name AS holder_name, i.state AS holder_state, extract(epoch FROM l.expires_at - rowlock.ledger_time())::float8 AS seconds_left,
       (SELECT count(*) FROM rowlock.lock_waiters AS w WHERE w.lock_name = l.lock_name AND w.expires_at > rowlock.ledger_time()) AS standby
FROM rowlock.services AS s
LEFT JOIN rowlock.service_locks AS l ON l.lock_name = 'service:' || s.service_name AND l.slot = 0
LEFT JOIN rowlock.service_instances AS i ON i.id = l.holder
ORDER BY s.service_name
