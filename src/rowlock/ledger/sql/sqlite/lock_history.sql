-- The last holdings of a lease that have ended, newest first.
SELECT h.slot, h.token, h.holder, i.name AS holder_name, h.acquired_at, h.ended_at,
       h.ended_at - h.acquired_at AS held_for, h.ended, h.detail
FROM lock_holdings AS h
LEFT JOIN service_instances AS i ON i.id = h.holder
WHERE h.lock_name = :name
ORDER BY h.ended_at DESC, h.token DESC
LIMIT :limit
