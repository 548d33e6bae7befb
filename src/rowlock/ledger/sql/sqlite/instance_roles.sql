-- What an instance does has changed.
UPDATE service_instances SET roles = :roles WHERE id = :id
