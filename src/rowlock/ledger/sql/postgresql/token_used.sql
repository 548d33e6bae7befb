-- When a token was last used, to the minute: a busy token must not cost a write for each request.
UPDATE rowlock.api_tokens SET used_at = rowlock.ledger_time()
WHERE id = %(id)s AND (used_at IS NULL OR used_at < rowlock.ledger_time() - interval '1 minute')
