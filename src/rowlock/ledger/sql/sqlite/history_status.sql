-- How a record was settled.
SELECT status FROM processing_history WHERE id = :id
