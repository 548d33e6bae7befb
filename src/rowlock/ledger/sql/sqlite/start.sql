-- Announces that a suspect record (whose worker died before) really starts now, so that a death from here on
-- counts against it, and not against its neighbours in the same worker. No row: the token is stale.
UPDATE processing_queue SET started = 1 WHERE id = :id AND token = :token RETURNING id
