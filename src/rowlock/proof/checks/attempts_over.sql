-- More attempts than the flow allows, counted anew after each re-drive; or more deaths.
WITH driven AS (
    SELECT record_id, outcome,
           sum(outcome = 'redriven') OVER (PARTITION BY record_id ORDER BY token, outcome = 'redriven' DESC) AS drive
    FROM attempts
), spent AS (
    SELECT record_id, drive, count(*) AS attempts
    FROM driven WHERE outcome IN ('failed', 'timed_out') GROUP BY record_id, drive
)
SELECT r.flow || '/' || r.key AS thing, s.attempts || ' attempts failed, of ' || e.max_attempts AS detail
FROM spent AS s
JOIN records AS r ON r.id = s.record_id
JOIN expected AS e ON e.flow = r.flow AND e.key = r.key
WHERE s.attempts > e.max_attempts
UNION ALL
SELECT r.flow || '/' || r.key, 'attempt ' || r.attempt || ' of ' || e.max_attempts
FROM records AS r JOIN expected AS e ON e.flow = r.flow AND e.key = r.key
WHERE r.attempt > e.max_attempts
UNION ALL
SELECT r.flow || '/' || r.key, r.deaths || ' deaths, of ' || e.max_deaths
FROM records AS r JOIN expected AS e ON e.flow = r.flow AND e.key = r.key
WHERE r.deaths > e.max_deaths
