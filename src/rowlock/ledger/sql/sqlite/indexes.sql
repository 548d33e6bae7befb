-- The ledger's indexes; SQLite has none that cannot be used.
SELECT name, 1 AS valid FROM sqlite_master WHERE type = 'index'
