-- Forgets what has left the flow's window.
DELETE FROM rowlock.flow_outcomes
WHERE flow_name = %(flow)s AND piece < extract(epoch FROM rowlock.ledger_time())::float8 - 2 * %(window)s
