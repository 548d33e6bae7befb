-- Counts inputs by hand, and ends the job if they say so.
SELECT rowlock.count_job(%(job)s, %(done)s, %(dead)s, %(cancelled)s, 0, %(why)s) AS ended
