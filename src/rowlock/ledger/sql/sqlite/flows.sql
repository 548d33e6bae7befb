-- Every flow with its live records counted by state, and its dead letters.
SELECT f.flow_name, f.state, f.reason, f.max_attempts, f.max_deaths, f.limit_name, b.state AS breaker,
       b.probe_at - ledger_time() AS probe_seconds,
       coalesce(q.ready, 0) AS ready, coalesce(q.waiting, 0) AS waiting, coalesce(q.processing, 0) AS processing,
       coalesce(q.retry_wait, 0) AS retry_wait,
       (ledger_time() - q.oldest) AS oldest_seconds,
       (SELECT count(*) FROM processing_history h WHERE h.status = 'dead' AND h.flow_name = f.flow_name) AS dead,
       (SELECT count(*) FROM processing_history h
        WHERE h.flow_name = f.flow_name AND h.status = 'completed'
          AND h.settled_at > ledger_time() - 3600) AS completed_last_hour
FROM flows AS f
LEFT JOIN (
    SELECT flow_name,
           count(*) FILTER (WHERE ready) AS ready,
           count(*) FILTER (WHERE NOT ready AND status = 'pending') AS waiting,
           count(*) FILTER (WHERE status = 'processing') AS processing,
           count(*) FILTER (WHERE status = 'retry_wait') AS retry_wait,
           min(created_at) FILTER (WHERE ready) AS oldest
    FROM processing_queue GROUP BY flow_name
) AS q ON q.flow_name = f.flow_name
LEFT JOIN flow_breakers AS b ON b.flow_name = f.flow_name
ORDER BY f.flow_name
