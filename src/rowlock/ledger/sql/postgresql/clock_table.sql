-- For tests: how far this ledger's clock runs ahead. One row, made once.
CREATE TABLE rowlock.fake_clock AS SELECT 0::float8 AS seconds
