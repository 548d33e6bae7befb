-- Waiters that stopped asking have left the line.
DELETE FROM lock_waiters WHERE lock_name = :name AND expires_at <= ledger_time()
