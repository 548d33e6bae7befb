-- Makes a slot that is free ours; a token that rises says which holding this is.
UPDATE service_locks
SET token = CASE WHEN :mine THEN token ELSE token + 1 END,
    acquired_at = CASE WHEN :mine THEN acquired_at ELSE ledger_time() END,
    holder = :holder, request = :request, note = :note, ttl_seconds = :ttl,
    renewed_at = ledger_time(), expires_at = ledger_time() + :ttl
WHERE lock_name = :name AND slot = :slot
RETURNING slot, token
