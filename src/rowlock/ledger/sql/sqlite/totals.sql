-- Takeovers and refused stale writes over all instances that are remembered.
SELECT coalesce(sum(takeovers), 0) AS takeovers, coalesce(sum(stale_refused), 0) AS stale_refused,
       coalesce(sum(completed), 0) AS completed, coalesce(sum(failed), 0) AS failed
FROM service_instances
