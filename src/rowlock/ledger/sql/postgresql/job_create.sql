-- A new job. Its key tells the day and its number. No row: the idempotency key is taken.
INSERT INTO rowlock.export_job
    (job_id, job_key, exporter, status, policy, priority, requested_at, requested_by, deadline_at, total_inputs, webhook_url,
     idempotency_key, body_hash)
SELECT n, 'J' || to_char(now AT TIME ZONE 'UTC', 'YYYYMMDD') || '_' || lpad(n::text, greatest(6, length(n::text)), '0'),
       %(exporter)s, 'SUBMITTED', %(policy)s, %(priority)s, now, %(requested_by)s, now + %(deadline)s * interval '1 second',
       %(total)s, %(webhook)s, %(idempotency_key)s, %(body_hash)s
FROM (SELECT nextval('rowlock.export_job_job_id_seq') AS n, rowlock.ledger_time() AS now) AS t
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING job_id, job_key, requested_at
