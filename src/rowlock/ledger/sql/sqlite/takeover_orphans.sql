-- What dead instances hold, and how each such record is judged. A first death may only have been a neighbour's
-- fault, so it spends no attempt; a suspect's counts only if it had really started.
SELECT q.id, q.token, q.holder, q.flow_name, q.attempt, q.started,
       CASE WHEN q.deaths = 0 OR q.started THEN q.deaths + 1 ELSE q.deaths END AS deaths,
       i.name AS instance_name, coalesce(f.max_deaths, 3) AS max_deaths, coalesce(f.max_attempts, 5) AS max_attempts
FROM processing_queue AS q
JOIN service_instances AS i ON i.id = q.holder
LEFT JOIN flows AS f ON f.flow_name = q.flow_name
WHERE q.holder IS NOT NULL AND i.state IN ('dead', 'stopped')
LIMIT :limit
