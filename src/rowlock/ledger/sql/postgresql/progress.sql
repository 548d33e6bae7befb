-- Notes how far a record has come; also the cheapest way to ask whether the token still counts.
UPDATE rowlock.processing_queue
SET progress = coalesce(%(progress)s, progress)
WHERE id = %(id)s AND token = %(token)s
RETURNING id
