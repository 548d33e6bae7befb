-- Adds what one worker counted to the flow's window. Nothing counts while the breaker is open: those attempts began
-- before.
INSERT INTO flow_outcomes (flow_name, piece, fingerprint, example, attempts)
SELECT :flow, CAST(ledger_time() / :width AS INTEGER) * :width, json_extract(value, '$.fingerprint'),
       json_extract(value, '$.example'), json_extract(value, '$.attempts')
FROM json_each(:counts)
WHERE NOT EXISTS (SELECT 1 FROM flow_breakers AS b WHERE b.flow_name = :flow)
ON CONFLICT (flow_name, piece, fingerprint) DO UPDATE
SET attempts = attempts + excluded.attempts, example = excluded.example
