SELECT f.flow_name, f.state, f.reason, f.max_attempts, f.max_deaths, f.updated_at, f.limit_name, b.state AS breaker,
       extract(epoch FROM b.probe_at - rowlock.ledger_time())::float8 AS probe_seconds
FROM rowlock.flows AS f
LEFT JOIN rowlock.flow_breakers AS b ON b.flow_name = f.flow_name
WHERE f.flow_name = %(flow)s
