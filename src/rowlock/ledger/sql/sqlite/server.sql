-- What the ledger runs on.
SELECT sqlite_version() AS version
