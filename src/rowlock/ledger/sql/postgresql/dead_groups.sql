-- Dead letters by what killed them.
SELECT flow_name, fingerprint, count(*) AS records, min(settled_at) AS first_at, max(settled_at) AS last_at,
       (array_agg(reason ORDER BY id DESC))[1] AS example, max(id) AS example_id
FROM rowlock.processing_history
WHERE status = 'dead' AND (%(flow)s::text IS NULL OR flow_name = %(flow)s)
GROUP BY flow_name, fingerprint
ORDER BY count(*) DESC, flow_name, fingerprint
LIMIT %(limit)s
