-- Adds what one instance counted since its last heartbeat.
INSERT INTO tallies (metric, subject, part, value)
SELECT json_extract(value, '$.metric'), json_extract(value, '$.subject'), json_extract(value, '$.part'),
       json_extract(value, '$.value')
FROM json_each(:counts)
WHERE true
ON CONFLICT (metric, subject, part) DO UPDATE SET value = value + excluded.value
