-- An instance becomes the one that probes: the pause is over, and nobody probes who is alive.
UPDATE flows AS f
SET prober = :instance
WHERE f.flow_name = :flow AND f.state = 'paused'
  AND EXISTS (SELECT 1 FROM flow_breakers AS b
              WHERE b.flow_name = f.flow_name AND b.probe_at <= ledger_time())
  AND NOT EXISTS (SELECT 1 FROM service_instances AS i
                  WHERE i.id = f.prober AND i.id <> :instance AND i.state = 'active'
                    AND i.expires_at > ledger_time())
RETURNING flow_name
