-- How a run of a service ended, and what it does next. A stale holder's report changes nothing.
UPDATE rowlock.services
SET state = %(state)s, reason = %(reason)s, updated_at = rowlock.ledger_time(),
    crashes = crashes + %(crashed)s, crashes_in_row = CASE WHEN %(crashed)s = 1 THEN crashes_in_row + 1 ELSE 0 END
WHERE service_name = %(service)s AND token = %(token)s
RETURNING crashes_in_row
