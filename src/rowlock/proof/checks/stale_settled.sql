-- Settled by a stale token: what the handler did was done under another token than the one the record was settled with.
-- (An effect elsewhere may be older than the completion: its handler finds the processing log's row.)
SELECT r.flow || '/' || r.key AS thing,
       'its effect carries token ' || f.token || ' of instance ' || f.instance || ', its completion token ' || r.token
       || ' of instance ' || r.instance AS detail
FROM effects AS f JOIN records AS r ON r.id = f.record_id
WHERE f.place = 'ledger' AND r.status = 'completed' AND (f.token <> r.token OR f.instance IS NOT r.instance)
UNION ALL
SELECT flow || '/' || key, 'its result was made under token ' || result_token || ', it was settled with ' || token
FROM records
WHERE status = 'completed' AND result_token IS NOT NULL AND result_token <> token
