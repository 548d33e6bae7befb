-- A worker makes its flow and its limits known; whether it is paused is not the worker's to say.
INSERT INTO rowlock.flows (flow_name, max_attempts, max_deaths, updated_at)
VALUES (%(flow)s, %(max_attempts)s, %(max_deaths)s, rowlock.ledger_time())
ON CONFLICT (flow_name) DO UPDATE
SET max_attempts = excluded.max_attempts, max_deaths = excluded.max_deaths, updated_at = excluded.updated_at
WHERE flows.max_attempts <> excluded.max_attempts OR flows.max_deaths <> excluded.max_deaths
