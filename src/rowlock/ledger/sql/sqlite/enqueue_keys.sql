-- Takes the key, unless somebody has it.
INSERT INTO record_keys (flow_name, record_key, batch)
VALUES (:flow, :key, :batch)
ON CONFLICT (flow_name, record_key) DO NOTHING
