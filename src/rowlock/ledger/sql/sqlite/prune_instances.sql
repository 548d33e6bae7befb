-- Forgets instances that ended long ago and hold nothing; a trigger adds what they did to the totals.
DELETE FROM service_instances AS i
WHERE i.ended_at < ledger_time() - :seconds
  AND NOT EXISTS (SELECT 1 FROM processing_queue q WHERE q.holder = i.id)
