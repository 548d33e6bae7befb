-- Who this ledger is.
SELECT identity FROM ledger_identity
