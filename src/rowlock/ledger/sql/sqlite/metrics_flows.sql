-- For each flow, its live records by state, the age of the oldest that could run, and its dead letters.
SELECT f.flow_name, coalesce(q.pending, 0) AS pending, coalesce(q.processing, 0) AS processing,
       coalesce(q.retry_wait, 0) AS retry_wait,
       (ledger_time() - q.oldest) AS oldest_seconds,
       (SELECT count(*) FROM processing_history h WHERE h.status = 'dead' AND h.flow_name = f.flow_name) AS dead
FROM flows AS f
LEFT JOIN (
    SELECT flow_name,
           count(*) FILTER (WHERE status = 'pending') AS pending,
           count(*) FILTER (WHERE status = 'processing') AS processing,
           count(*) FILTER (WHERE status = 'retry_wait') AS retry_wait,
           min(created_at) FILTER (WHERE ready) AS oldest
    FROM processing_queue GROUP BY flow_name
) AS q ON q.flow_name = f.flow_name
ORDER BY f.flow_name
