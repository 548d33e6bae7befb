SELECT flow_name, state, reason, max_attempts, max_deaths, updated_at
FROM flows
WHERE flow_name = :flow
