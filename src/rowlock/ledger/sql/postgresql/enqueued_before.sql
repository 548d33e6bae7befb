-- The records that an enqueue of this batch inserted, when its commit's reply was lost.
SELECT record_id AS id
FROM rowlock.record_keys
WHERE flow_name = %(flow)s AND record_key = ANY(%(keys)b::text[]) AND batch = %(batch)s
