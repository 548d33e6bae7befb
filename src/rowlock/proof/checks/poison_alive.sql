-- Poison kills its worker each time: it has to be found out and be dead, and nothing else may be.
SELECT e.flow || '/' || e.key AS thing,
       'it kills its worker, and it is ' || coalesce(r.status, 'gone') AS detail
FROM expected AS e LEFT JOIN records AS r ON r.flow = e.flow AND r.key = e.key
WHERE e.fate = 'dead' AND r.status IS NOT 'dead'
