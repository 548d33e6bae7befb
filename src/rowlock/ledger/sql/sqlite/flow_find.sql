SELECT f.flow_name, f.state, f.reason, f.max_attempts, f.max_deaths, f.updated_at, f.limit_name, b.state AS breaker,
       b.probe_at - ledger_time() AS probe_seconds
FROM flows AS f
LEFT JOIN flow_breakers AS b ON b.flow_name = f.flow_name
WHERE f.flow_name = :flow
