SELECT record_id AS id
FROM rowlock.record_keys
WHERE record_key = %(key)s AND (%(flow)s::text IS NULL OR flow_name = %(flow)s)
ORDER BY flow_name
LIMIT 2
