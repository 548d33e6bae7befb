-- Takes a named lease if it is free or expired, renews it if it is mine, and otherwise returns no row.
INSERT INTO service_locks AS l (lock_name, token, holder, acquired_at, renewed_at, expires_at)
SELECT :name, 1, :holder, now, now, now + :ttl
FROM (SELECT ledger_time() AS now) AS t WHERE true
ON CONFLICT (lock_name) DO UPDATE
SET token = CASE WHEN l.holder = excluded.holder AND l.expires_at > excluded.renewed_at
                 THEN l.token ELSE l.token + 1 END,
    acquired_at = CASE WHEN l.holder = excluded.holder AND l.expires_at > excluded.renewed_at
                       THEN l.acquired_at ELSE excluded.acquired_at END,
    holder = excluded.holder, renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
WHERE l.holder IS NULL OR l.holder = excluded.holder OR l.expires_at <= excluded.renewed_at
RETURNING token
