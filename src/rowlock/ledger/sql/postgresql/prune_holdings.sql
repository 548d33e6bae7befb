-- Forgets holdings that ended long ago. The tokens stay where they rise, in the lease's own row.
DELETE FROM rowlock.lock_holdings WHERE ended_at < rowlock.ledger_time() - %(seconds)s * interval '1 second'
