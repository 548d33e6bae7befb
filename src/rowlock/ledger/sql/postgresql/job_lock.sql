-- Keeps everybody else from settling this job's inputs until the end of the transaction.
SELECT job_id FROM rowlock.export_job WHERE job_id = %(job)s FOR UPDATE
