-- Reserves the next free moments, as many as are wanted and lie within `longest` seconds from now; the first one is
-- `wait` seconds away. After an idle time the moments begin in the past, at most `burst` of them before the next.
-- The clock is read once, under the write lock, so that nobody's moment comes before an earlier one's. Asked twice, it
-- reserves twice: what nobody uses is lost, never used by two.
WITH moment AS MATERIALIZED (
    SELECT ledger_time() AS now
), line AS MATERIALIZED (
    SELECT m.now, l.interval_seconds, max(l.next_at, m.now - (l.burst - 1) * l.interval_seconds) AS first
    FROM limits AS l, moment AS m
    WHERE l.limit_name = :name AND l.interval_seconds IS NOT NULL
), fitting AS MATERIALIZED (
    SELECT now, first, interval_seconds,
           CASE WHEN first - now > :longest THEN 0
                ELSE min(:count, 1 + CAST((:longest - (first - now)) / interval_seconds AS INTEGER)) END AS got
    FROM line
)
UPDATE limits
SET asked_at = f.now, got = f.got, reserved = reserved + f.got,
    next_at = CASE WHEN f.got = 0 THEN next_at ELSE f.first + f.got * f.interval_seconds END
FROM fitting AS f
WHERE limit_name = :name
RETURNING got, next_at - got * interval_seconds - asked_at AS wait, interval_seconds, rate
