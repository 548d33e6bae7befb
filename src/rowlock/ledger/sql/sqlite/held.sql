-- What an instance holds, in the claim's columns: after a lost reply it adopts what it did not know it has.
SELECT id, token, flow_name, record_key, payload AS payload, attempt, deaths, priority, created_at
FROM processing_queue
WHERE holder = :holder
