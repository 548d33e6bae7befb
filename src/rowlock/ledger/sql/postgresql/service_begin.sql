-- A run of a service begins, under a valid token. No row: the lease was lost, and nothing may run.
-- A run that is late by less than its period keeps the rhythm; after a longer gap it begins anew.
INSERT INTO rowlock.services AS s
    (service_name, token, instance_id, state, every_seconds, runs, run_at, updated_at)
SELECT %(service)s, %(token)s, %(instance)s, 'running', %(every)s, 1, now, now
FROM (SELECT rowlock.ledger_time() AS now) AS t
WHERE EXISTS (SELECT 1 FROM rowlock.service_locks AS l
              WHERE l.lock_name = %(name)s AND l.slot = 0 AND l.token = %(token)s AND l.expires_at > t.now)
ON CONFLICT (service_name) DO UPDATE
SET token = excluded.token, instance_id = excluded.instance_id, state = 'running',
    reason = CASE WHEN s.crashes_in_row > 0 THEN s.reason END,  -- of the last crash, until a run went well
   
    every_seconds = excluded.every_seconds, runs = s.runs + 1, updated_at = excluded.updated_at,
    run_at = CASE WHEN s.run_at + 2 * excluded.every_seconds * interval '1 second' > excluded.run_at
                  THEN least(s.run_at + excluded.every_seconds * interval '1 second', excluded.run_at)
                  ELSE excluded.run_at END
WHERE s.token <= excluded.token
RETURNING runs
