-- Jobs that ended so long ago, and whose leftovers have not been swept since.
SELECT job_id, job_key, ends FROM export_job
WHERE swept < ends AND completed_at < ledger_time() - :seconds
ORDER BY completed_at
LIMIT :limit
