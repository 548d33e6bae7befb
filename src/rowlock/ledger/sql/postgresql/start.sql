-- Announces that a suspect record (one whose worker died before) really starts now, so that a death from here
-- on counts against it, and not against its neighbours in the same worker. No row: the token is stale.
UPDATE rowlock.processing_queue SET started = true WHERE id = %(id)s AND token = %(token)s RETURNING id
