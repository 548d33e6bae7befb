-- What happened to a job since a moment.
SELECT event_id, happened_at, kind, detail
FROM rowlock.export_job_event
WHERE job_id = %(job)s AND event_id > %(after)s
ORDER BY event_id
LIMIT %(limit)s
