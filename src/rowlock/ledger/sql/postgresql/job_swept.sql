-- The sweeping of a job has been ordered. No row: somebody else did it.
UPDATE rowlock.export_job SET swept = %(ends)s WHERE job_id = %(job)s AND swept < %(ends)s RETURNING job_id
