-- One statement renews everything that an instance holds. What is not returned has been lost: its token is stale,
-- or its time was up before we asked.
UPDATE service_locks
SET renewed_at = ledger_time(), holder = :holder, expires_at = ledger_time() + ttl_seconds
FROM (SELECT json_extract(value, '$[0]') AS lock_name, json_extract(value, '$[1]') AS slot, json_extract(value, '$[2]') AS token FROM json_each(:leases)) AS k
WHERE service_locks.lock_name = k.lock_name AND service_locks.slot = k.slot AND service_locks.token = k.token
  AND service_locks.holder IS NOT NULL AND service_locks.expires_at > ledger_time()
RETURNING lock_name, slot
