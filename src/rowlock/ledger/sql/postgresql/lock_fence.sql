-- The fence, inside the transaction that it protects: no row means that the token is stale, and nothing may be
-- committed. From here to the commit nobody can take the lease; should this client be stopped just now, the server
-- ends the transaction after one ttl. A caller's own transaction has no number, and must not hide that of another
-- whose reply was lost.
UPDATE rowlock.service_locks
SET last_commit = coalesce(%(commit)s::bigint, last_commit)
WHERE lock_name = %(name)s AND slot = %(slot)s AND token = %(token)s
  AND holder IS NOT NULL AND expires_at > rowlock.ledger_time()
RETURNING token, set_config('idle_in_transaction_session_timeout', %(ttl_ms)s::text, true) AS guard
