-- Adds what one worker counted to the flow's window. Nothing counts while the breaker is open: those attempts began
-- before.
INSERT INTO rowlock.flow_outcomes (flow_name, piece, fingerprint, example, attempts)
SELECT %(flow)s, floor(extract(epoch FROM rowlock.ledger_time())::float8 / %(width)s) * %(width)s,
       c.fingerprint, c.example, c.attempts
FROM json_to_recordset(%(counts)s::json) AS c (fingerprint text, example text, attempts bigint)
WHERE NOT EXISTS (SELECT 1 FROM rowlock.flow_breakers AS b WHERE b.flow_name = %(flow)s)
ON CONFLICT (flow_name, piece, fingerprint) DO UPDATE
SET attempts = flow_outcomes.attempts + excluded.attempts, example = excluded.example
