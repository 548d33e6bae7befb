-- The slot that the next taker may have; none while all are held, or somebody came before us.
-- A slot that carries our own request is ours already: the reply to an earlier try was lost.
SELECT l.slot, l.token, l.holder, l.acquired_at, l.expires_at, l.request IS :request AS mine
FROM service_locks AS l
WHERE l.lock_name = :name AND l.slot < :slots
  AND (l.request = :request
       OR ((l.holder IS NULL OR l.expires_at <= ledger_time())
           AND NOT EXISTS (SELECT 1 FROM lock_waiters AS w
                           WHERE w.lock_name = :name AND w.ticket < :ticket AND w.expires_at > ledger_time())))
ORDER BY l.request IS NOT :request, l.slot
LIMIT 1
