-- Does the flow, unless it is paused, have a live record anywhere?
SELECT 1 AS live
FROM rowlock.flows AS f
WHERE f.flow_name = %(flow)s AND f.state <> 'paused'
  AND EXISTS (SELECT 1 FROM rowlock.processing_queue AS q WHERE q.flow_name = f.flow_name)
