-- How many clients the server takes (the reserved places are not for us), and how many it has.
SELECT current_setting('max_connections')::int
           - current_setting('superuser_reserved_connections')::int AS places,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS taken
