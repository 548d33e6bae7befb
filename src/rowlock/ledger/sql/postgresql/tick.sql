-- What maintenance has to do next: seconds until a record's time comes, and until an instance's lease ends.
SELECT
    (SELECT extract(epoch FROM min(run_at) - rowlock.ledger_time())::float8
     FROM rowlock.processing_queue WHERE NOT ready AND holder IS NULL) AS next_due,
    (SELECT extract(epoch FROM min(expires_at) - rowlock.ledger_time())::float8
     FROM rowlock.service_instances WHERE state IN ('active', 'draining')) AS next_expiry,
    EXISTS (SELECT 1 FROM rowlock.processing_queue q
            JOIN rowlock.service_instances i ON i.id = q.holder
            WHERE q.holder IS NOT NULL AND i.state IN ('dead', 'stopped')) AS orphans
