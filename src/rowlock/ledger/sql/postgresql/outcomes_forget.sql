-- The window begins anew.
DELETE FROM rowlock.flow_outcomes WHERE flow_name = %(flow)s
