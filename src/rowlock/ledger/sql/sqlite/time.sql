SELECT ledger_time() AS now
