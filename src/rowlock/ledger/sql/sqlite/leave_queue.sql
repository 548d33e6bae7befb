-- Second half of a settling: the record leaves the queue if the token is right.
DELETE FROM processing_queue WHERE id = :id AND token = :token
