-- How many ready records of the flow are claimed before this one.
SELECT count(*) AS ahead
FROM processing_queue
WHERE ready AND flow_name = :flow AND (-priority, id) < (-:priority, :id)
