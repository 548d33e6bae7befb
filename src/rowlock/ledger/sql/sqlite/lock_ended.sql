-- Notes a holding that has ended, as the lease's row has it: before that row changes.
INSERT INTO lock_holdings (lock_name, slot, token, holder, acquired_at, ended_at, ended, detail)
SELECT lock_name, slot, token, holder, acquired_at, min(expires_at, ledger_time()),
       CASE WHEN expires_at <= ledger_time() THEN 'expired' ELSE :ended END, :detail
FROM service_locks
WHERE lock_name = :name AND slot = :slot AND token = :token AND holder IS NOT NULL
RETURNING ended
