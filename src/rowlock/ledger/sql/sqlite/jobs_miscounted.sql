-- Open jobs whose kept counts differ from their inputs. There are none, unless somebody changed the tables by hand.
-- A job so old that some of its inputs have been forgotten cannot be counted.
SELECT j.job_id, j.job_key, sum(i.status = 'SUCCEEDED') AS done, sum(i.status = 'DLQ') AS dead,
       sum(i.status = 'CANCELLED') AS cancelled
FROM export_job AS j
JOIN export_job_input AS i ON i.job_id = j.job_id
WHERE j.status IN ('SUBMITTED', 'RUNNING')
GROUP BY j.job_id, j.job_key, j.total_inputs, j.done, j.dead, j.cancelled
HAVING count(*) = j.total_inputs
   AND (j.done <> sum(i.status = 'SUCCEEDED') OR j.dead <> sum(i.status = 'DLQ') OR j.cancelled <> sum(i.status = 'CANCELLED'))
