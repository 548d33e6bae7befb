SELECT record_id AS id
FROM record_keys
WHERE record_key = :key AND (:flow IS NULL OR flow_name = :flow)
ORDER BY flow_name
LIMIT 2
