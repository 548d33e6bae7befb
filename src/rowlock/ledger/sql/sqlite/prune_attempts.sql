DELETE FROM record_attempts WHERE record_id = :id
