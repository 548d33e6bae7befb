-- Forgets instances that ended long ago and hold nothing; what they did is added to the totals.
WITH pruned AS (
    DELETE FROM rowlock.service_instances AS i
    WHERE i.ended_at < rowlock.ledger_time() - %(seconds)s * interval '1 second'
      AND NOT EXISTS (SELECT 1 FROM rowlock.processing_queue q WHERE q.holder = i.id)
    RETURNING i.completed, i.failed, i.stale_refused, i.takeovers
), did AS (
    SELECT sum(completed) AS completed, sum(failed) AS failed, sum(stale_refused) AS stale_refused,
           sum(takeovers) AS takeovers
    FROM pruned HAVING count(*) > 0
)
UPDATE rowlock.pruned_totals AS t
SET completed = t.completed + did.completed, failed = t.failed + did.failed,
    stale_refused = t.stale_refused + did.stale_refused, takeovers = t.takeovers + did.takeovers
FROM did
