-- Nobody holds it any more. The row stays and its token rises, so that whatever was sent under the old one is refused.
UPDATE service_locks
SET token = token + 1, holder = NULL, request = NULL, note = NULL, expires_at = ledger_time()
WHERE lock_name = :name AND slot = :slot AND token = :token
RETURNING token
