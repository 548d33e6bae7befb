-- A record that had to be completed and was given up.
SELECT r.flow || '/' || r.key AS thing, 'it is ' || r.status || ': ' || coalesce(r.reason, 'no reason is given') AS detail
FROM expected AS e JOIN records AS r ON r.flow = e.flow AND r.key = e.key
WHERE e.fate = 'completed' AND r.settled_at IS NOT NULL AND r.status <> 'completed'
