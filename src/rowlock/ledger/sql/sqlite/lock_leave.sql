-- Leaves the line.
DELETE FROM lock_waiters WHERE ticket = :ticket
