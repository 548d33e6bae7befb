-- The dead letters that a filter names, oldest first, a page at a time.
SELECT id
FROM rowlock.processing_history
WHERE status = 'dead' AND id > %(after)s
  AND (%(flow)s::text IS NULL OR flow_name = %(flow)s)
  AND (%(fingerprint)s::text IS NULL OR fingerprint = %(fingerprint)s)
ORDER BY id
LIMIT %(limit)s
