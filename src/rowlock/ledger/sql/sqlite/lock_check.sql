-- Were there ever two holders? Every holding of a slot, in the order of tokens, must begin when the one before had
-- ended. One row with the number of holdings; with what is wrong, if anything is, up to ten.
WITH holdings AS (
    SELECT slot, token, holder, acquired_at, ended_at FROM lock_holdings WHERE lock_name = :name
    UNION ALL
    SELECT slot, token, holder, acquired_at, NULL
    FROM service_locks WHERE lock_name = :name AND holder IS NOT NULL
), pairs AS (
    SELECT slot, token, holder, acquired_at, lag(token) OVER line AS token_before,
           lag(holder) OVER line AS holder_before, lag(ended_at) OVER line AS ended_before_at
    FROM holdings
    WINDOW line AS (PARTITION BY slot ORDER BY token)
)
SELECT c.holdings, wrong.*
FROM (SELECT count(*) AS holdings FROM pairs) AS c
LEFT JOIN (
    SELECT * FROM pairs
    WHERE token_before IS NOT NULL AND (ended_before_at IS NULL OR acquired_at < ended_before_at)
    ORDER BY slot, token LIMIT 10
) AS wrong ON true
