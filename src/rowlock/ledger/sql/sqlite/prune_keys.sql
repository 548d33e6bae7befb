DELETE FROM record_keys WHERE record_id = :id
