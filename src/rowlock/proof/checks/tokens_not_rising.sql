-- Tokens only ever rise: of one record in the order of its attempts, of the lock in the order of its holdings, and of
-- the fenced log in the order of its rows.
SELECT 'record ' || record_id AS thing, 'token ' || token || ' ended after token ' || before AS detail
FROM (SELECT record_id, token, lag(token) OVER (PARTITION BY record_id ORDER BY ended_at, token) AS before
      FROM attempts)
WHERE token <= before
UNION ALL
SELECT 'record ' || r.id, 'settled with token ' || r.token || ' after an attempt with token ' || a.token
FROM records AS r JOIN attempts AS a ON a.record_id = r.id
WHERE r.settled_at IS NOT NULL AND (a.token > r.token OR (r.status = 'completed' AND a.token = r.token AND a.outcome <> 'redriven'))
UNION ALL
SELECT 'the lock', 'token ' || token || ' was taken after token ' || before
FROM (SELECT token, lag(token) OVER (ORDER BY acquired_at, token) AS before FROM lock_holdings)
WHERE token <= before
UNION ALL
SELECT 'fenced log, row ' || seq, 'token ' || token || ' stands after token ' || before
FROM (SELECT seq, token, max(token) OVER (ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM fenced)
WHERE token < before
