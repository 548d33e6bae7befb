-- Reserves the next free moments, as many as are wanted and lie within `longest` seconds from now; the first one is
-- `wait` seconds away. After an idle time the moments begin in the past, at most `burst` of them before the next.
-- The clock is read when the row is locked, so that nobody's moment comes before an earlier one's. Asked twice, it
-- reserves twice: what nobody uses is lost, never used by two.
WITH held AS MATERIALIZED (
    SELECT next_at, interval_seconds, burst FROM rowlock.limits
    WHERE limit_name = %(name)s AND interval_seconds IS NOT NULL
    FOR UPDATE
), moment AS MATERIALIZED (
    SELECT next_at, interval_seconds, burst, rowlock.ledger_time() AS now FROM held
), line AS MATERIALIZED (
    SELECT now, interval_seconds,
           greatest(next_at, now - (burst - 1) * interval_seconds * interval '1 second') AS first
    FROM moment
), fitting AS MATERIALIZED (
    SELECT now, first, interval_seconds,
           greatest(0, least(%(count)s::int, 1 + floor(
               (%(longest)s::float8 - extract(epoch FROM first - now)::float8) / interval_seconds)))::int AS got
    FROM line
)
UPDATE rowlock.limits AS l
SET asked_at = f.now, got = f.got, reserved = l.reserved + f.got,
    next_at = CASE WHEN f.got = 0 THEN l.next_at ELSE f.first + f.got * f.interval_seconds * interval '1 second' END
FROM fitting AS f
WHERE l.limit_name = %(name)s
RETURNING f.got, extract(epoch FROM f.first - f.now)::float8 AS wait, l.interval_seconds, l.rate
