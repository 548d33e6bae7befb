-- Open jobs whose kept counts differ from their inputs. There are none, unless somebody changed the tables by hand.
-- A job so old that some of its inputs have been forgotten cannot be counted.
SELECT j.job_id, j.job_key, c.done, c.dead, c.cancelled
FROM rowlock.export_job AS j
CROSS JOIN LATERAL (
    SELECT count(*) AS known, count(*) FILTER (WHERE i.status = 'SUCCEEDED') AS done, count(*) FILTER (WHERE i.status = 'DLQ') AS dead,
           count(*) FILTER (WHERE i.status = 'CANCELLED') AS cancelled
    FROM rowlock.export_job_input AS i WHERE i.job_id = j.job_id
) AS c
WHERE j.status IN ('SUBMITTED', 'RUNNING') AND c.known = j.total_inputs AND (j.done, j.dead, j.cancelled) <> (c.done, c.dead, c.cancelled)
