-- The end of the line. The numbers rise with the order of arrival.
WITH gone AS (
    DELETE FROM rowlock.lock_waiters WHERE lock_name = %(name)s AND expires_at <= rowlock.ledger_time()
)
INSERT INTO rowlock.lock_waiters (lock_name, instance_id, since, expires_at)
SELECT %(name)s, %(holder)s, now, now + %(patience)s * interval '1 second'
FROM (SELECT rowlock.ledger_time() AS now) AS t
RETURNING ticket
