-- Notes how far a record has come; also the cheapest way to ask whether the token still counts.
UPDATE processing_queue
SET progress = coalesce(:progress, progress)
WHERE id = :id AND token = :token
RETURNING id
