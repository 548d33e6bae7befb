-- The end of the line. The numbers rise with the order of arrival.
INSERT INTO lock_waiters (lock_name, instance_id, since, expires_at)
VALUES (:name, :holder, ledger_time(), ledger_time() + :patience)
RETURNING ticket
