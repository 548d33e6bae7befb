-- Dead rows in the hot table that vacuum has not removed yet.
SELECT n_live_tup AS live, n_dead_tup AS dead, greatest(last_vacuum, last_autovacuum) AS vacuumed_at
FROM pg_stat_user_tables
WHERE schemaname = %(schema)s AND relname = 'processing_queue'
