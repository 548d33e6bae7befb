-- The end of a job has been put into the outbox. No row: somebody else did it.
UPDATE rowlock.export_job SET told = %(ends)s WHERE job_id = %(job)s AND told < %(ends)s RETURNING job_id
