-- One heartbeat keeps everything the instance holds. No row: it was declared dead, and holds nothing any more.
UPDATE service_instances
SET heartbeat_at = ledger_time(), expires_at = ledger_time() + lease_seconds,
    completed = :completed, failed = :failed, stale_refused = :stale_refused, takeovers = :takeovers
WHERE id = :id AND state IN ('active', 'draining')
RETURNING state, ledger_time() AS now
