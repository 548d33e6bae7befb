-- When a token was last used, to the minute: a busy token must not cost a write for each request.
UPDATE api_tokens SET used_at = ledger_time()
WHERE id = :id AND (used_at IS NULL OR used_at < ledger_time() - 60)
