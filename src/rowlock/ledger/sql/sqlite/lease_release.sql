-- Gives a lease back. The row stays, so that the token keeps rising.
UPDATE service_locks
SET holder = NULL, expires_at = ledger_time()
WHERE lock_name = :name AND holder = :holder AND token = :token
RETURNING lock_name
