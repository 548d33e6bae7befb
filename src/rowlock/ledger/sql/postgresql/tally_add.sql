-- Adds what one instance counted since its last heartbeat.
INSERT INTO rowlock.tallies (metric, subject, part, value)
SELECT c.metric, c.subject, c.part, c.value
FROM json_to_recordset(%(counts)s::json) AS c (metric text, subject text, part text, value double precision)
ON CONFLICT (metric, subject, part) DO UPDATE SET value = tallies.value + excluded.value
