-- The breaker's own row says so too.
UPDATE flow_breakers SET state = 'probing' WHERE flow_name = :flow
