DELETE FROM processing_queue WHERE id = :id
