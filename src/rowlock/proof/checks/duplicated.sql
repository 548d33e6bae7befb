-- Duplicated: an effect that happened more than once, or a key that was accepted more than once.
SELECT flow || '/' || key AS thing,
       count(*) || ' effects, under the tokens ' || group_concat(token) AS detail
FROM effects GROUP BY place, flow, key HAVING count(*) > 1
UNION ALL
SELECT flow || '/' || key, count(*) || ' records have this key: ' || group_concat(id)
FROM records GROUP BY flow, key HAVING count(*) > 1
