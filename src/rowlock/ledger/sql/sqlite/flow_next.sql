-- Is there anything for this instance to do in a flow now, and if not: in how many seconds does a record's time come?
-- What others hold is theirs, unless their lease has ended.
SELECT coalesce(max(q.ready OR coalesce(q.holder = :holder, 0) OR (q.holder IS NULL AND q.run_at <= ledger_time())
                    OR coalesce(i.state IN ('dead', 'stopped') OR i.expires_at <= ledger_time(), 0)), 0) AS busy,
       min(CASE WHEN NOT q.ready AND q.holder IS NULL THEN q.run_at END) - ledger_time() AS next_due
FROM processing_queue AS q
JOIN flows AS f ON f.flow_name = q.flow_name AND f.state <> 'paused'
LEFT JOIN service_instances AS i ON i.id = q.holder
WHERE q.flow_name = :flow
