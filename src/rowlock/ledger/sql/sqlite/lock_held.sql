-- Who holds a slot now, if anybody.
SELECT token, holder FROM service_locks WHERE lock_name = :name AND slot = :slot AND holder IS NOT NULL
