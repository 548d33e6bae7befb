-- One heartbeat keeps everything the instance holds. No row: it was declared dead, and holds nothing any more.
UPDATE rowlock.service_instances
SET heartbeat_at = rowlock.ledger_time(), expires_at = rowlock.ledger_time() + lease_seconds * interval '1 second',
    completed = %(completed)s, failed = %(failed)s, stale_refused = %(stale_refused)s, takeovers = %(takeovers)s
WHERE id = %(id)s AND state IN ('active', 'draining')
RETURNING state, extract(epoch FROM rowlock.ledger_time())::float8 AS now
