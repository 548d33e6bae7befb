-- The ledger's indexes, and whether each can be used: a CREATE INDEX CONCURRENTLY that failed leaves one that cannot.
SELECT c.relname AS name, i.indisvalid AND i.indisready AS valid
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s
