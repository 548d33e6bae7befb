SELECT 1 FROM processing_queue WHERE ready AND flow_name = :flow LIMIT 1
