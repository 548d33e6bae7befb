-- The breaker is closed.
DELETE FROM flow_breakers WHERE flow_name = :flow
