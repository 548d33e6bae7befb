-- What happened to a job since a moment.
SELECT event_id, happened_at, kind, detail
FROM export_job_event
WHERE job_id = :job AND event_id > :after
ORDER BY event_id
LIMIT :limit
