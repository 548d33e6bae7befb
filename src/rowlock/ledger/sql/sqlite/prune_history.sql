DELETE FROM processing_history WHERE id = :id
