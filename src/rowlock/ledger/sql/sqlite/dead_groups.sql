-- Dead letters by what killed them. A bare column beside max(id) is of the row that has it.
SELECT flow_name, fingerprint, count(*) AS records, min(settled_at) AS first_at, max(settled_at) AS last_at,
       reason AS example, max(id) AS example_id
FROM processing_history
WHERE status = 'dead' AND (:flow IS NULL OR flow_name = :flow)
GROUP BY flow_name, fingerprint
ORDER BY count(*) DESC, flow_name, fingerprint
LIMIT :limit
