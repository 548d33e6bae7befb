-- Who holds a slot now, if anybody; with a token, only if that is still the holding.
SELECT token, holder FROM service_locks WHERE lock_name = :name AND slot = :slot AND holder IS NOT NULL
  AND (:token IS NULL OR token = :token)
