-- Records whose time has come join the ready ones.
UPDATE processing_queue SET ready = 1, status = 'pending'
WHERE id IN (
    SELECT id FROM processing_queue
    WHERE NOT ready AND holder IS NULL AND run_at <= ledger_time()
    ORDER BY run_at LIMIT :limit
)
RETURNING flow_name
