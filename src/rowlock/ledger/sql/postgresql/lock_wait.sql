-- Still waiting: keeps the place in the line. No row: it was lost, because we were silent for too long.
UPDATE rowlock.lock_waiters
SET expires_at = rowlock.ledger_time() + %(patience)s * interval '1 second'
WHERE ticket = %(ticket)s AND expires_at > rowlock.ledger_time()
RETURNING ticket
