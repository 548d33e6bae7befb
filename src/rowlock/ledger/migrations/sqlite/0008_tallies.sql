-- What the whole fleet did since the ledger began, added up by the instances' heartbeats: these numbers never fall.
CREATE TABLE tallies (
    metric   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    part     TEXT NOT NULL,
    value    REAL NOT NULL,
    PRIMARY KEY (metric, subject, part)
) WITHOUT ROWID;
