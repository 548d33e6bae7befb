-- Forgets instances that ended long ago and hold nothing.
DELETE FROM rowlock.service_instances AS i
WHERE i.ended_at < rowlock.ledger_time() - %(seconds)s * interval '1 second'
  AND NOT EXISTS (SELECT 1 FROM rowlock.processing_queue q WHERE q.holder = i.id)
