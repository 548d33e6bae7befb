-- The job that an idempotency key has made, and of what.
SELECT job_key, body_hash FROM rowlock.export_job WHERE idempotency_key = %(idempotency_key)s
