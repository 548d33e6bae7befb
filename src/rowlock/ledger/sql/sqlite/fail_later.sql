-- The record waits for its next attempt; the token rises, so that a second settling of this one is refused.
UPDATE processing_queue
SET status = 'retry_wait', ready = 0, holder = NULL, token = token + 1, deaths = deaths + :deaths,
    run_at = ledger_time() + :delay
WHERE id = :id AND token = :token AND NOT :final
