-- What the server needs: who may call it, and totals that never fall.

-- Bearer tokens. Only the hash of a secret is kept; its prefix is what people recognise it by. A revoked token keeps its
-- row: a ledger that has ever had a token is never open to everybody again.
CREATE TABLE rowlock.api_tokens (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text COLLATE "C" NOT NULL,
    role        text NOT NULL CHECK (role IN ('read', 'submit', 'operate', 'admin')),
    hash        text NOT NULL,
    prefix      text NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    used_at     timestamptz,
    revoked_at  timestamptz
);
-- A name belongs to one token at a time.
CREATE UNIQUE INDEX api_tokens_name ON rowlock.api_tokens (name) WHERE revoked_at IS NULL;

-- What instances did that have been pruned since: without it, counters would fall whenever the history is pruned.
CREATE TABLE rowlock.pruned_totals (
    id             integer PRIMARY KEY CHECK (id = 1),
    completed      bigint NOT NULL,
    failed         bigint NOT NULL,
    stale_refused  bigint NOT NULL,
    takeovers      bigint NOT NULL
);
INSERT INTO rowlock.pruned_totals VALUES (1, 0, 0, 0, 0);
