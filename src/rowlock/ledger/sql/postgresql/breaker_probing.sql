-- The breaker's own row says so too.
UPDATE rowlock.flow_breakers SET state = 'probing' WHERE flow_name = %(flow)s
