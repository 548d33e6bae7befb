-- Live records, newest first, a page at a time.
SELECT id, flow_name, record_key, status, priority, attempt, deaths, holder, progress, created_at, run_at,
       NULL::timestamptz AS settled_at, NULL::text AS reason
FROM rowlock.processing_queue
WHERE id < %(before)s
  AND (%(flow)s::text IS NULL OR flow_name = %(flow)s)
  AND (%(status)s::text IS NULL OR status = %(status)s)
ORDER BY id DESC
LIMIT %(limit)s
