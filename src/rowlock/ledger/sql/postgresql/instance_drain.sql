-- The instance stops claiming, and finishes what it has.
UPDATE rowlock.service_instances SET state = 'draining' WHERE id = %(id)s AND state = 'active' RETURNING id
