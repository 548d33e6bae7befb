-- Instances by state; a suspect has missed a heartbeat and is not yet dead.
SELECT CASE WHEN state = 'active' AND ledger_time() > heartbeat_at + lease_seconds * 0.5
            THEN 'suspect' ELSE state END AS state, count(*) AS instances
FROM service_instances
GROUP BY 1
