-- Queues the record if its key was taken by this very batch.
INSERT INTO processing_queue
    (id, flow_name, record_key, payload, priority, status, ready, created_at, run_at, job_id)
SELECT record_id, flow_name, record_key, :payload, :priority, 'pending', :run_at <= :now, :now, :run_at, :job
FROM record_keys
WHERE flow_name = :flow AND record_key = :key AND batch = :batch
