-- Has this ledger's clock been replaced by one that tests can move?
SELECT to_regclass('rowlock.fake_clock') IS NOT NULL AS known
