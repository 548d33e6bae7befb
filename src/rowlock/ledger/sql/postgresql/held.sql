-- What an instance holds, in the claim's columns: after a lost reply it adopts what it did not know it has.
SELECT id, token, flow_name, record_key, payload::text AS payload, attempt, deaths, priority, created_at
FROM rowlock.processing_queue
WHERE holder = %(holder)s
