-- The fence, inside the transaction that it protects: no row means that the token is stale, and nothing may be
-- committed. Nobody can take the lease before the commit: this connection has the write lock. A caller's own
-- transaction has no number, and must not hide that of another whose reply was lost.
UPDATE service_locks
SET last_commit = coalesce(:commit, last_commit)
WHERE lock_name = :name AND slot = :slot AND token = :token AND holder IS NOT NULL AND expires_at > ledger_time()
RETURNING token
