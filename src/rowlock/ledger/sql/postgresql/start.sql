-- Announces that suspect records (whose worker died before) really start now, so that a death from here on
-- counts against them, and not against their neighbours in the same worker. Not returned: the token is stale.
UPDATE rowlock.processing_queue AS q
SET started = true
FROM unnest(%(ids)b::bigint[], %(tokens)b::bigint[]) AS s (id, token)
WHERE q.id = ANY(%(ids)b::bigint[]) AND q.id = s.id AND q.token = s.token
RETURNING q.id
