-- Gives a lease back. The row stays, so that the token keeps rising.
UPDATE rowlock.service_locks
SET holder = NULL, expires_at = rowlock.ledger_time()
WHERE lock_name = %(name)s AND holder = %(holder)s AND token = %(token)s
RETURNING lock_name
