-- The ids that a batch was given, in order.
SELECT record_id AS id FROM record_keys WHERE record_id > :after AND batch = :batch ORDER BY record_id
