-- The instance leaves, or is replaced by its own next incarnation. Its counters are kept either way.
UPDATE service_instances
SET state = CASE WHEN state = 'dead' THEN state ELSE :state END,
    ended_at = coalesce(ended_at, ledger_time()),
    ended_reason = coalesce(ended_reason, :reason), completed = :completed, failed = :failed,
    stale_refused = :stale_refused, takeovers = :takeovers
WHERE id = :id
RETURNING id
