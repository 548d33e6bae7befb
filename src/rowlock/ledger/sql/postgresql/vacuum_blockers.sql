-- What holds vacuum back in this database, oldest first: transactions, replication slots, prepared transactions.
-- Dead rows that they may still see cannot be removed, and every claim has to walk over them.
SELECT 'transaction' AS kind, pid, application_name, state,
       extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age_seconds,
       age(coalesce(backend_xmin, backend_xid))::bigint AS age_transactions
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND xact_start IS NOT NULL AND coalesce(backend_xmin, backend_xid) IS NOT NULL
UNION ALL
SELECT 'replication slot', active_pid, slot_name::text, CASE WHEN active THEN 'active' ELSE 'inactive' END,
       NULL, greatest(age(xmin), age(catalog_xmin))::bigint
FROM pg_replication_slots
WHERE xmin IS NOT NULL OR (catalog_xmin IS NOT NULL AND database = current_database())
UNION ALL
SELECT 'prepared transaction', NULL, gid, 'prepared',
       extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)::bigint
FROM pg_prepared_xacts
WHERE database = current_database()
ORDER BY age_transactions DESC
LIMIT 20
