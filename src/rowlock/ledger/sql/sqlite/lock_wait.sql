-- Still waiting: keeps the place in the line. No row: it was lost, because we were silent for too long.
UPDATE lock_waiters SET expires_at = ledger_time() + :patience
WHERE ticket = :ticket AND expires_at > ledger_time()
RETURNING ticket
