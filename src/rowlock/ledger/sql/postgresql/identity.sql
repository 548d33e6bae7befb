-- Who this ledger is.
SELECT identity FROM rowlock.ledger_identity
