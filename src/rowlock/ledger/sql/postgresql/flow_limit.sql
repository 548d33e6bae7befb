-- Which limit a flow starts within, for whoever asks why a record waits.
UPDATE rowlock.flows SET limit_name = %(limit)s
WHERE flow_name = %(flow)s AND limit_name IS DISTINCT FROM %(limit)s
