-- Which limit a flow starts within, for whoever asks why a record waits.
UPDATE flows SET limit_name = :limit
WHERE flow_name = :flow AND limit_name IS NOT :limit
