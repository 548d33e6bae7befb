-- The slots of one lease: who holds each, since when, for how long still, and how many wait before this ticket.
SELECT l.slot, l.token, l.holder, l.note, i.name AS holder_name, i.state AS holder_state, extract(epoch FROM rowlock.ledger_time() - l.acquired_at)::float8 AS held_for,
       extract(epoch FROM l.expires_at - rowlock.ledger_time())::float8 AS seconds_left,
       (SELECT count(*) FROM rowlock.lock_waiters AS w
        WHERE w.lock_name = l.lock_name AND w.ticket < %(ticket)s AND w.expires_at > rowlock.ledger_time()) AS ahead
FROM rowlock.service_locks AS l
LEFT JOIN rowlock.service_instances AS i ON i.id = l.holder
WHERE l.lock_name = %(name)s AND l.slot < %(slots)s
ORDER BY l.slot
