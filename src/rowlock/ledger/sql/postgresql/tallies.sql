-- Everything that the fleet has counted.
SELECT metric, subject, part, value FROM rowlock.tallies ORDER BY metric, subject, part
