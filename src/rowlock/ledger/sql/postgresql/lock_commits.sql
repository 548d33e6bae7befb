-- What became of a fenced transaction whose commit's reply was lost: the number of the last one that was committed.
-- FOR UPDATE waits for one that is still under way.
SELECT token, last_commit FROM rowlock.service_locks WHERE lock_name = %(name)s AND slot = %(slot)s
FOR UPDATE
