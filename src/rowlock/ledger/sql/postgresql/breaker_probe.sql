-- An instance becomes the one that probes: the pause is over, and nobody probes who is alive.
UPDATE rowlock.flows AS f
SET prober = %(instance)s
WHERE f.flow_name = %(flow)s AND f.state = 'paused'
  AND EXISTS (SELECT 1 FROM rowlock.flow_breakers AS b
              WHERE b.flow_name = f.flow_name AND b.probe_at <= rowlock.ledger_time())
  AND NOT EXISTS (SELECT 1 FROM rowlock.service_instances AS i
                  WHERE i.id = f.prober AND i.id <> %(instance)s AND i.state = 'active'
                    AND i.expires_at > rowlock.ledger_time())
RETURNING f.flow_name
