-- What a job's counts should be, less what they are. The job is locked before: whoever settles an input needs that lock, so
-- nothing changes in between.
SELECT count(*) FILTER (WHERE i.status = 'SUCCEEDED') - j.done AS done, count(*) FILTER (WHERE i.status = 'DLQ') - j.dead AS dead,
       count(*) FILTER (WHERE i.status = 'CANCELLED') - j.cancelled AS cancelled
FROM rowlock.export_job AS j
JOIN rowlock.export_job_input AS i ON i.job_id = j.job_id
WHERE j.job_id = %(job)s
GROUP BY j.job_id
