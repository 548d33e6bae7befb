-- A new job. Its key, which tells the day and its number, is set with the next statement. No row: the idempotency key is taken.
INSERT INTO export_job
    (job_key, exporter, status, policy, priority, requested_at, requested_by, deadline_at, total_inputs, webhook_url,
     idempotency_key, body_hash)
SELECT 'new', :exporter, 'SUBMITTED', :policy, :priority, now, :requested_by, now + :deadline, :total, :webhook,
       :idempotency_key, :body_hash
FROM (SELECT ledger_time() AS now) AS t WHERE true
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING job_id
