-- The oldest settled records, a small batch. Dead letters stay, unless they are asked for.
SELECT id FROM processing_history
WHERE settled_at < ledger_time() - :seconds AND (status <> 'dead' OR :dead_too)
ORDER BY settled_at
LIMIT :limit
