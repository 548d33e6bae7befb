-- What maintenance has to do next: seconds until a record's time comes, and until an instance's lease ends.
SELECT
    (SELECT min(run_at) - ledger_time() FROM processing_queue WHERE NOT ready AND holder IS NULL) AS next_due,
    (SELECT min(expires_at) - ledger_time() FROM service_instances WHERE state IN ('active', 'draining'))
        AS next_expiry,
    EXISTS (SELECT 1 FROM processing_queue q
            JOIN service_instances i ON i.id = q.holder
            WHERE q.holder IS NOT NULL AND i.state IN ('dead', 'stopped')) AS orphans
