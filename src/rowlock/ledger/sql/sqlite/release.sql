-- Hands a record back with its attempt unspent: at once, or after a delay. The token rises.
UPDATE processing_queue
SET status = CASE WHEN :delay > 0 THEN 'retry_wait' ELSE 'pending' END, ready = (:delay <= 0),
    holder = NULL, token = token + 1, attempt = max(attempt - 1, 0), claimed_at = NULL,
    run_at = ledger_time() + :delay
WHERE id = :id AND token = :token
RETURNING id
