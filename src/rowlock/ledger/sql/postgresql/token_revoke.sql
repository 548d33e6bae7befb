-- Ends a token now; no row when there is none of that name, or it was revoked before.
UPDATE rowlock.api_tokens SET revoked_at = rowlock.ledger_time()
WHERE name = %(name)s AND revoked_at IS NULL
RETURNING id
