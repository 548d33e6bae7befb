-- A new token; no row when a token of that name is there that was not revoked.
INSERT INTO rowlock.api_tokens (name, role, hash, prefix, created_at, expires_at)
VALUES (%(name)s, %(role)s, %(hash)s, %(prefix)s, rowlock.ledger_time(),
        rowlock.ledger_time() + %(seconds)s::float8 * interval '1 second')
ON CONFLICT DO NOTHING
RETURNING id, expires_at
