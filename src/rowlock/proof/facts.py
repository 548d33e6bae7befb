"""The facts: everything that the checker may know, copied into one SQLite file that can be kept and checked again."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from rowlock.clock import as_datetime
from rowlock.proof.sample import samples
from rowlock.proof.workload import LOCK, MAX_ATTEMPTS, POISON_DEATHS, TICK, open_second, schema_of, tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rowlock.proof.arena import Arena
    from rowlock.proof.journal import Journal

# Times are seconds since 1970, by the ledger's clock.
TABLES = """
CREATE TABLE expected (flow TEXT, key TEXT, fate TEXT, effects TEXT, max_attempts INTEGER, max_deaths INTEGER,
                       PRIMARY KEY (flow, key)) WITHOUT ROWID;
CREATE TABLE records (id INTEGER, flow TEXT, key TEXT, status TEXT, token INTEGER, instance INTEGER, attempt INTEGER,
                      deaths INTEGER, redrives INTEGER, claimed_at REAL, settled_at REAL, result_token INTEGER,
                      reason TEXT);
CREATE TABLE keys (flow TEXT, key TEXT, record_id INTEGER);
CREATE TABLE effects (place TEXT, record_id INTEGER, flow TEXT, key TEXT, token INTEGER, instance INTEGER);
CREATE TABLE attempts (record_id INTEGER, token INTEGER, attempt INTEGER, outcome TEXT, ended_at REAL);
CREATE TABLE fenced (seq INTEGER PRIMARY KEY, token INTEGER, pid INTEGER, at REAL);
CREATE TABLE lock_holdings (token INTEGER, instance INTEGER, acquired_at REAL, ended_at REAL, ended TEXT);
CREATE TABLE faults (number INTEGER PRIMARY KEY, kind TEXT, detail TEXT, at REAL, lasted REAL);
CREATE TABLE struck (fault INTEGER, record_id INTEGER, token INTEGER, started INTEGER);
"""
_INDEXES = """
CREATE INDEX records_id ON records (id);
CREATE INDEX records_key ON records (flow, key);
CREATE INDEX effects_key ON effects (flow, key);
CREATE INDEX attempts_id ON attempts (record_id, token);
"""
_PAGE = 20_000


class Facts:
    def __init__(self, path: Path | str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = OFF")
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.executescript(TABLES)

    def close(self) -> None:
        self.connection.close()

    def add(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        columns = len(self.connection.execute(f"PRAGMA table_info({table})").fetchall())
        marks = ", ".join("?" * columns)
        self.connection.execute("BEGIN")
        self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        self.connection.execute("COMMIT")

    def index(self) -> None:
        """After everything has been added."""
        self.connection.executescript(_INDEXES)

    def gather(self, arena: Arena, journal: Journal, seed: int, records: int) -> None:
        """Copies everything out of the ledger, the second database and the journal."""
        self.add(
            "expected",
            (
                (
                    s.flow, s.key, s.fate, s.effects, MAX_ATTEMPTS.get(s.flow),
                    POISON_DEATHS if s.fate == "dead" else None,
                )
                for s in samples(seed, 0, records)
            ),
        )  # fmt: skip
        self._from_ledger(arena)
        self._expect_ticks(arena)
        self._from_second(arena)
        self.add("faults", ((n, f.kind, f.detail, f.at, f.lasted) for n, f in enumerate(journal.faults)))
        self.add(
            "struck",
            ((n, h.id, h.token, h.started) for n, f in enumerate(journal.faults) for h in f.holdings),
        )
        self.index()

    def _from_ledger(self, arena: Arena) -> None:
        schema = schema_of(arena.settings)
        prefix = f'"{schema}".' if schema else ""
        own = tables(schema)

        def seconds(column: str) -> str:
            return f"extract(epoch FROM {column})::float8" if schema else column

        token = "(result->>'token')::bigint" if schema else "json_extract(result, '$.token')"
        history = (
            "id, flow_name, record_key, status, token, holder, attempt, deaths, redrives, "
            f"{seconds('claimed_at')}, {seconds('settled_at')}, "
            f"CASE WHEN flow_name IN ('plain', 'elsewhere') THEN {token} END, reason"
        )
        live = history.replace(seconds("settled_at"), "NULL").replace(token, "NULL").replace("reason", "NULL")
        queries = {
            "records": [
                f"SELECT {history} FROM {prefix}processing_history",
                f"SELECT {live} FROM {prefix}processing_queue",
            ],
            "keys": [f"SELECT flow_name, record_key, record_id FROM {prefix}record_keys"],
            "effects": [f"SELECT 'ledger', record_id, flow, record_key, token, instance FROM {own['effects']}"],
            "attempts": [
                f"SELECT record_id, token, attempt, outcome, {seconds('ended_at')} FROM {prefix}record_attempts"
            ],
            "fenced": [f"SELECT seq, token, pid, {seconds('at')} FROM {own['fenced']}"],
            "lock_holdings": [
                f"""SELECT token, holder, {seconds("acquired_at")}, {seconds("ended_at")}, ended
                    FROM {prefix}lock_holdings WHERE lock_name = '{LOCK}'"""
            ],
        }  # fmt: skip
        with arena.ledger.engine.connect() as connection:
            for table, selects in queries.items():
                for select in selects:
                    rows = connection.execute(text(select), execution_options={"yield_per": _PAGE})
                    for page in rows.partitions():
                        self.add(table, (tuple(row) for row in page))

    def _expect_ticks(self, arena: Arena) -> None:
        """One record for every second from the first tick to the last one that the schedule's row has."""
        rows = [row for row in arena.ledger.run_safely("schedules") if row.schedule_name == TICK.name]
        first = self.connection.execute(
            "SELECT min(key) FROM records WHERE flow = ?", (TICK.flow,)
        ).fetchone()[0]
        if not rows or first is None:
            return
        tick = datetime.fromisoformat(first.partition("@")[2])
        last = as_datetime(rows[0].last_tick_at)
        assert last is not None  # noqa: S101 - it is never null
        ticks = []
        while tick <= last:
            ticks.append((TICK.flow, TICK.key(tick), "completed", "ledger", None, None))
            tick += timedelta(seconds=1)
        self.add("expected", ticks)

    def _from_second(self, arena: Arena) -> None:
        engine = open_second(arena.second_url)
        select = "SELECT 'second', record_id, flow, record_key, token, instance FROM proof_effects"
        with engine.connect() as connection:
            for page in connection.execute(text(select)).partitions(_PAGE):
                self.add("effects", (tuple(row) for row in page))
        engine.dispose()
