-- Dead letters, newest first, a page at a time.
SELECT id, flow_name, record_key, attempt, deaths, redrives, created_at, settled_at, reason, fingerprint
FROM rowlock.processing_history
WHERE status = 'dead' AND id < %(before)s
  AND (%(flow)s::text IS NULL OR flow_name = %(flow)s)
  AND (%(fingerprint)s::text IS NULL OR fingerprint = %(fingerprint)s)
ORDER BY id DESC
LIMIT %(limit)s
