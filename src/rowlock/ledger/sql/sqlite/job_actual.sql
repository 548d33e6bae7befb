-- What a job's counts should be, less what they are. The write lock is held: nothing changes in between.
SELECT sum(i.status = 'SUCCEEDED') - j.done AS done, sum(i.status = 'DLQ') - j.dead AS dead,
       sum(i.status = 'CANCELLED') - j.cancelled AS cancelled
FROM export_job AS j
JOIN export_job_input AS i ON i.job_id = j.job_id
WHERE j.job_id = :job
GROUP BY j.job_id
