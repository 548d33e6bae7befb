SELECT extract(epoch FROM rowlock.ledger_time())::float8 AS now
