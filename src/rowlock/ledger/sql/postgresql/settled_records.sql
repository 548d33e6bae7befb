-- Settled records, newest first, a page at a time.
SELECT id, flow_name, record_key, status, priority, attempt, deaths, holder, NULL::real AS progress, created_at,
       NULL::timestamptz AS run_at, settled_at, reason
FROM rowlock.processing_history
WHERE id < %(before)s
  AND (%(flow)s::text IS NULL OR flow_name = %(flow)s)
  AND (%(status)s::text IS NULL OR status = %(status)s)
ORDER BY id DESC
LIMIT %(limit)s
