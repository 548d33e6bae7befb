-- How many settled records a pruning would forget.
SELECT count(*) AS records
FROM rowlock.processing_history
WHERE settled_at < rowlock.ledger_time() - %(seconds)s * interval '1 second'
  AND (status <> 'dead' OR %(dead_too)s)
