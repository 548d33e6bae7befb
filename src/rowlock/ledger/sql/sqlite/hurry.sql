-- A record that waits for its time may run now.
UPDATE processing_queue
SET ready = 1, status = 'pending', run_at = ledger_time()
WHERE id = :id AND NOT ready AND holder IS NULL
RETURNING id
