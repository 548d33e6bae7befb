-- What an instance does has changed.
UPDATE rowlock.service_instances SET roles = %(roles)s WHERE id = %(id)s
