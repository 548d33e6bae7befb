-- The end of a job has been put into the outbox. No row: somebody else did it.
UPDATE export_job SET told = :ends WHERE job_id = :job AND told < :ends RETURNING job_id
