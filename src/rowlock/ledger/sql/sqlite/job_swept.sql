-- The sweeping of a job has been ordered. No row: somebody else did it.
UPDATE export_job SET swept = :ends WHERE job_id = :job AND swept < :ends RETURNING job_id
