-- The instance leaves, or is replaced by its own next incarnation. Its counters are kept either way.
UPDATE rowlock.service_instances
SET state = CASE WHEN state = 'dead' THEN state ELSE %(state)s END,
    ended_at = coalesce(ended_at, rowlock.ledger_time()),
    ended_reason = coalesce(ended_reason, %(reason)s), completed = %(completed)s, failed = %(failed)s,
    stale_refused = %(stale_refused)s, takeovers = %(takeovers)s
WHERE id = %(id)s
RETURNING id
