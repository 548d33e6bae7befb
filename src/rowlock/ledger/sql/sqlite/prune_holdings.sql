-- Forgets holdings that ended long ago. The tokens stay where they rise, in the lease's own row.
DELETE FROM lock_holdings WHERE ended_at < ledger_time() - :seconds
