-- What the server needs: who may call it, and totals that never fall.

-- Bearer tokens. Only the hash of a secret is kept; its prefix is what people recognise it by. A revoked token keeps its
-- row: a ledger that has ever had a token is never open to everybody again.
CREATE TABLE api_tokens (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('read', 'submit', 'operate', 'admin')),
    hash        TEXT NOT NULL,
    prefix      TEXT NOT NULL,
    created_at  REAL NOT NULL,
    expires_at  REAL,
    used_at     REAL,
    revoked_at  REAL
);
-- A name belongs to one token at a time.
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (name) WHERE revoked_at IS NULL;

-- What instances did that have been pruned since: without it, counters would fall whenever the history is pruned.
CREATE TABLE pruned_totals (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    completed      INTEGER NOT NULL,
    failed         INTEGER NOT NULL,
    stale_refused  INTEGER NOT NULL,
    takeovers      INTEGER NOT NULL
);
INSERT INTO pruned_totals VALUES (1, 0, 0, 0, 0);
-- PostgreSQL adds them in the statement that deletes; here a statement does one thing only.
CREATE TRIGGER service_instances_pruned AFTER DELETE ON service_instances
BEGIN
    UPDATE pruned_totals
    SET completed = completed + old.completed, failed = failed + old.failed,
        stale_refused = stale_refused + old.stale_refused, takeovers = takeovers + old.takeovers;
END;
