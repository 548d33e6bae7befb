-- How many ready records of the flow are claimed before this one.
SELECT count(*) AS ahead
FROM rowlock.processing_queue
WHERE ready AND flow_name = %(flow)s AND (-priority, id) < (-%(priority)s::smallint, %(id)s)
