-- Ends a token now; no row when there is none of that name, or it was revoked before.
UPDATE api_tokens SET revoked_at = ledger_time()
WHERE name = :name AND revoked_at IS NULL
RETURNING id
