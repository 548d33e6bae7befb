DELETE FROM processing_history WHERE id = :id AND status IN ('dead', 'cancelled')
