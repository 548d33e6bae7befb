-- May this account see what other accounts' sessions do?
SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all
