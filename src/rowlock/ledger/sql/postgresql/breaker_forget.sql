-- The breaker is closed.
DELETE FROM rowlock.flow_breakers WHERE flow_name = %(flow)s
