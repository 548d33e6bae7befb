-- A new token; no row when a token of that name is there that was not revoked.
INSERT INTO api_tokens (name, role, hash, prefix, created_at, expires_at)
VALUES (:name, :role, :hash, :prefix, ledger_time(), ledger_time() + :seconds)
ON CONFLICT DO NOTHING
RETURNING id, expires_at
