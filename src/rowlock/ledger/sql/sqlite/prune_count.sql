-- How many settled records a pruning would forget.
SELECT count(*) AS records
FROM processing_history
WHERE settled_at < ledger_time() - :seconds AND (status <> 'dead' OR :dead_too)
