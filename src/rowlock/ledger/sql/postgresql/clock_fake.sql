-- For tests: this ledger's clock, so much ahead. VOLATILE, so that a statement that waited sees a later time.
CREATE OR REPLACE FUNCTION rowlock.ledger_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT clock_timestamp() + (SELECT seconds FROM rowlock.fake_clock) * interval '1 second' $$
