-- What the whole fleet did since the ledger began, added up by the instances' heartbeats: these numbers never fall.
CREATE TABLE rowlock.tallies (
    metric   text COLLATE "C" NOT NULL,
    subject  text COLLATE "C" NOT NULL,
    part     text COLLATE "C" NOT NULL,
    value    double precision NOT NULL,
    PRIMARY KEY (metric, subject, part)
) WITH (fillfactor = 50);
