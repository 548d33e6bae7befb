-- The rows of a lease that nobody has ever taken. They stay for ever, so that their tokens only rise.
INSERT INTO service_locks (lock_name, slot, token, acquired_at, renewed_at, expires_at)
SELECT :name, j.value, 0, ledger_time(), ledger_time(), ledger_time()
FROM json_each(:slot_list) AS j WHERE true
ON CONFLICT (lock_name, slot) DO NOTHING
