-- Leaves the line.
DELETE FROM rowlock.lock_waiters WHERE ticket = %(ticket)s
