-- The slots of one lease: who holds each, since when, for how long still, and how many wait before this ticket.
SELECT l.slot, l.token, l.holder, l.note, i.name AS holder_name, i.state AS holder_state, ledger_time() - l.acquired_at AS held_for,
       l.expires_at - ledger_time() AS seconds_left,
       (SELECT count(*) FROM lock_waiters AS w
        WHERE w.lock_name = l.lock_name AND w.ticket < :ticket AND w.expires_at > ledger_time()) AS ahead
FROM service_locks AS l
LEFT JOIN service_instances AS i ON i.id = l.holder
WHERE l.lock_name = :name AND l.slot < :slots
ORDER BY l.slot
