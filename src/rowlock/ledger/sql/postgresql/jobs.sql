-- Jobs, newest first, from a position on.
SELECT j.*
FROM rowlock.export_job_now AS j
WHERE j.job_id < %(before)s AND (%(status)s::text IS NULL OR j.status = %(status)s)
  AND (%(exporter)s::text IS NULL OR j.exporter = %(exporter)s)
ORDER BY j.job_id DESC
LIMIT %(limit)s
