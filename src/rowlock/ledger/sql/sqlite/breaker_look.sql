-- A flow as its breaker sees it: attempts within the window, the most frequent error, and who probes.
WITH recent AS MATERIALIZED (
    SELECT fingerprint, max(example) AS example, sum(attempts) AS attempts
    FROM flow_outcomes
    WHERE flow_name = :flow AND piece > ledger_time() - :window
    GROUP BY fingerprint
)
SELECT f.state AS flow_state, f.prober, b.state AS breaker, b.trips, b.pause_seconds,
       b.probe_at - ledger_time() AS probe_seconds,
       EXISTS (SELECT 1 FROM service_instances AS i
               WHERE i.id = f.prober AND i.state = 'active' AND i.expires_at > ledger_time()) AS prober_lives,
       (SELECT coalesce(sum(attempts), 0) FROM recent) AS attempts,
       (SELECT coalesce(sum(attempts), 0) FROM recent WHERE fingerprint <> '') AS failures,
       (SELECT example FROM recent WHERE fingerprint <> '' ORDER BY attempts DESC, fingerprint LIMIT 1) AS example,
       coalesce((SELECT max(attempts) FROM recent WHERE fingerprint <> ''), 0) AS most
FROM flows AS f
LEFT JOIN flow_breakers AS b ON b.flow_name = f.flow_name
WHERE f.flow_name = :flow
