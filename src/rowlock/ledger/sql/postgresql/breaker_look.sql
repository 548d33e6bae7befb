-- A flow as its breaker sees it: attempts within the window, the most frequent error, and who probes.
SELECT f.state AS flow_state, f.prober, b.state AS breaker, b.trips, b.pause_seconds,
       extract(epoch FROM b.probe_at - rowlock.ledger_time())::float8 AS probe_seconds,
       EXISTS (SELECT 1 FROM rowlock.service_instances AS i
               WHERE i.id = f.prober AND i.state = 'active' AND i.expires_at > rowlock.ledger_time()) AS prober_lives,
       coalesce(o.attempts, 0)::bigint AS attempts, coalesce(o.failures, 0)::bigint AS failures,
       e.example, coalesce(e.attempts, 0)::bigint AS most
FROM rowlock.flows AS f
LEFT JOIN rowlock.flow_breakers AS b ON b.flow_name = f.flow_name
LEFT JOIN LATERAL (
    SELECT sum(attempts) AS attempts, sum(attempts) FILTER (WHERE fingerprint <> '') AS failures
    FROM rowlock.flow_outcomes
    WHERE flow_name = f.flow_name AND piece > extract(epoch FROM rowlock.ledger_time())::float8 - %(window)s
) AS o ON true
LEFT JOIN LATERAL (
    SELECT max(example) AS example, sum(attempts) AS attempts
    FROM rowlock.flow_outcomes
    WHERE flow_name = f.flow_name AND fingerprint <> ''
      AND piece > extract(epoch FROM rowlock.ledger_time())::float8 - %(window)s
    GROUP BY fingerprint ORDER BY sum(attempts) DESC, fingerprint LIMIT 1
) AS e ON true
WHERE f.flow_name = %(flow)s
