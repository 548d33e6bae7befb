-- How a run of a service ended, and what it does next. A stale holder's report changes nothing.
UPDATE services
SET state = :state, reason = :reason, updated_at = ledger_time(),
    crashes = crashes + :crashed, crashes_in_row = CASE WHEN :crashed = 1 THEN crashes_in_row + 1 ELSE 0 END
WHERE service_name = :service AND token = :token
RETURNING crashes_in_row
