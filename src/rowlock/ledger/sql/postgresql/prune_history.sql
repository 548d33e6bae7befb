-- Forgets the oldest settled records, their keys and their attempts, a small batch at a time.
-- Dead letters stay until somebody re-drives them, unless they are asked for.
WITH old AS MATERIALIZED (
    SELECT id, flow_name, record_key
    FROM rowlock.processing_history
    WHERE settled_at < rowlock.ledger_time() - %(seconds)s * interval '1 second'
      AND (status <> 'dead' OR %(dead_too)s)
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), no_keys AS (
    DELETE FROM rowlock.record_keys AS k USING old
    WHERE k.flow_name = old.flow_name AND k.record_key = old.record_key AND k.record_id = old.id
), no_attempts AS (
    DELETE FROM rowlock.record_attempts WHERE record_id = ANY(ARRAY(SELECT id FROM old))
), gone AS (
    DELETE FROM rowlock.processing_history WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING id
)
SELECT count(*) AS records FROM gone
