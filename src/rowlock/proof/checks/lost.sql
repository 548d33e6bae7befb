-- Lost: a record that was to be enqueued and has not been settled; or one that is completed and whose effect is nowhere.
SELECT e.flow || '/' || e.key AS thing,
       CASE WHEN r.id IS NULL THEN 'it is nowhere in the ledger'
            WHEN r.settled_at IS NULL THEN 'it is still ' || r.status
            ELSE 'it is completed, and its effect is not there' END AS detail
FROM expected AS e
LEFT JOIN records AS r ON r.flow = e.flow AND r.key = e.key
WHERE r.id IS NULL OR r.settled_at IS NULL
   OR (r.status = 'completed' AND e.effects IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM effects AS f WHERE f.flow = e.flow AND f.key = e.key AND f.place = e.effects))
