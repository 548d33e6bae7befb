-- Is there anything for this instance to do in a flow now, and if not: in how many seconds does a record's time come?
-- What others hold is theirs, unless their lease has ended.
SELECT coalesce(bool_or(q.ready OR coalesce(q.holder = %(holder)s, false)
                        OR (q.holder IS NULL AND q.run_at <= rowlock.ledger_time())
                        OR coalesce(i.state IN ('dead', 'stopped') OR i.expires_at <= rowlock.ledger_time(), false)),
                false) AS busy,
       extract(epoch FROM min(q.run_at) FILTER (WHERE NOT q.ready AND q.holder IS NULL) - rowlock.ledger_time())::float8
           AS next_due
FROM rowlock.processing_queue AS q
JOIN rowlock.flows AS f ON f.flow_name = q.flow_name AND f.state <> 'paused'
LEFT JOIN rowlock.service_instances AS i ON i.id = q.holder
WHERE q.flow_name = %(flow)s
