-- Takeovers and refused stale writes over all instances that are remembered.
SELECT coalesce(sum(takeovers), 0)::bigint AS takeovers, coalesce(sum(stale_refused), 0)::bigint AS stale_refused,
       coalesce(sum(completed), 0)::bigint AS completed, coalesce(sum(failed), 0)::bigint AS failed
FROM rowlock.service_instances
