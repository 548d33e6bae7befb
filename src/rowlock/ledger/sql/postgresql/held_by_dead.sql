-- Records in the hands of instances that are gone, or whose lease has ended: they wait for a takeover.
SELECT count(*) AS records, count(DISTINCT q.holder) AS instances,
       max(extract(epoch FROM rowlock.ledger_time() - coalesce(i.ended_at, i.expires_at)))::float8 AS longest
FROM rowlock.processing_queue AS q
LEFT JOIN rowlock.service_instances AS i ON i.id = q.holder
WHERE q.holder IS NOT NULL
  AND (i.id IS NULL OR i.state IN ('dead', 'stopped') OR i.expires_at <= rowlock.ledger_time())
