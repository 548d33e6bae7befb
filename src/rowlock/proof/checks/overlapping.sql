-- Overlapping holdings: the lock was taken before its last holding had ended; or written under one that was not held.
SELECT 'the lock, token ' || token AS thing,
       'taken ' || round(before - acquired_at, 6) || ' s before the holding before it had ended' AS detail
FROM (SELECT token, acquired_at, lag(ended_at) OVER (ORDER BY token) AS before FROM lock_holdings)
WHERE acquired_at < before
UNION ALL
SELECT 'fenced log, row ' || f.seq, 'written by process ' || f.pid || ' outside of the holding of token ' || f.token
FROM fenced AS f JOIN lock_holdings AS h ON h.token = f.token
WHERE f.at < h.acquired_at OR f.at > h.ended_at
UNION ALL
SELECT 'token ' || token, count(DISTINCT pid) || ' processes wrote under one token'
FROM fenced GROUP BY token HAVING count(DISTINCT pid) > 1
