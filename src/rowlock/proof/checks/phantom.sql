-- Phantom: an effect of a record that never was, that is not completed, or that has no such effect; and a record
-- that nobody enqueued.
SELECT f.flow || '/' || f.key AS thing,
       CASE WHEN r.id IS NULL THEN 'an effect of record ' || f.record_id || ', which never was'
            WHEN r.status <> 'completed' THEN 'an effect of a record that is ' || r.status
            ELSE 'an effect in the ' || f.place || ' that this flow does not have' END AS detail
FROM effects AS f
LEFT JOIN records AS r ON r.id = f.record_id AND r.flow = f.flow AND r.key = f.key
LEFT JOIN expected AS e ON e.flow = f.flow AND e.key = f.key
WHERE r.id IS NULL OR r.status <> 'completed' OR e.effects IS NOT f.place
UNION ALL
SELECT r.flow || '/' || r.key, 'a record that nobody enqueued'
FROM records AS r
WHERE NOT EXISTS (SELECT 1 FROM expected AS e WHERE e.flow = r.flow AND e.key = r.key)
