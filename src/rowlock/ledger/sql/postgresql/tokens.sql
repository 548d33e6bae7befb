-- Every token there ever was, and whether it counts now.
SELECT id, name, role, hash, prefix, created_at, expires_at, used_at, revoked_at,
       CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
            WHEN expires_at <= rowlock.ledger_time() THEN 'expired' ELSE 'active' END AS state
FROM rowlock.api_tokens
ORDER BY id
