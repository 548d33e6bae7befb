-- What all instances did since the ledger began, those that are pruned included: these numbers never fall.
SELECT (t.takeovers + coalesce(sum(i.takeovers), 0))::bigint AS takeovers,
       (t.stale_refused + coalesce(sum(i.stale_refused), 0))::bigint AS stale_refused,
       (t.completed + coalesce(sum(i.completed), 0))::bigint AS completed,
       (t.failed + coalesce(sum(i.failed), 0))::bigint AS failed
FROM rowlock.pruned_totals AS t LEFT JOIN rowlock.service_instances AS i ON true
GROUP BY t.id
