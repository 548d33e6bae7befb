-- The record is claimable again. The token rises: whatever its old holder still writes is refused.
UPDATE processing_queue
SET status = 'pending', ready = 1, holder = NULL, token = token + 1, deaths = :deaths,
    attempt = CASE WHEN started THEN attempt ELSE max(attempt - 1, 0) END, started = 0
WHERE id = :id AND token = :token
