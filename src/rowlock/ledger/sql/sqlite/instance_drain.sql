-- The instance stops claiming, and finishes what it has.
UPDATE service_instances SET state = 'draining' WHERE id = :id AND state = 'active' RETURNING id
