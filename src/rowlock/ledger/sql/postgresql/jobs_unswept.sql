-- Jobs that ended so long ago, and whose leftovers have not been swept since.
SELECT job_id, job_key, ends FROM rowlock.export_job
WHERE swept < ends AND completed_at < rowlock.ledger_time() - %(seconds)s * interval '1 second'
ORDER BY completed_at
LIMIT %(limit)s
