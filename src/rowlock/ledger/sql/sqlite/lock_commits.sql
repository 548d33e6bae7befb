-- What became of a fenced transaction whose commit's reply was lost: the number of the last one that was committed.
SELECT token, last_commit FROM service_locks WHERE lock_name = :name AND slot = :slot
