-- Instances by state; a suspect has missed a heartbeat and is not yet dead.
SELECT CASE WHEN state = 'active' AND rowlock.ledger_time() > heartbeat_at + lease_seconds * 0.5 * interval '1 second'
            THEN 'suspect' ELSE state END AS state, count(*) AS instances
FROM rowlock.service_instances
GROUP BY 1
