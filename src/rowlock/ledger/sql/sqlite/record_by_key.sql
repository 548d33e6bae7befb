-- A record by its key; without a flow, one probe of the index for each flow there is.
SELECT k.record_id AS id, k.flow_name
FROM flows AS f
JOIN record_keys AS k ON k.flow_name = f.flow_name AND k.record_key = :key
WHERE :flow IS NULL OR f.flow_name = :flow
ORDER BY k.flow_name
LIMIT 2
