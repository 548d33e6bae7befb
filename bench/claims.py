"""What a claim of 100 costs: with few and many pending, with a long history, and under an old snapshot."""

from __future__ import annotations

import time
from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING, Any

import psycopg

from bench.floor import START, drain, exchange, register
from bench.server import FLOW

if TYPE_CHECKING:
    from bench.server import Server

_CLAIM = 100
_SMALL = 10_000
_PENDING = """
INSERT INTO rowlock.processing_queue (flow_name, record_key, payload, status, ready, created_at, run_at)
SELECT %s, n::text, json_build_object('id', n, 'note', repeat('x', 60)), 'pending', true, now(), now()
FROM generate_series(1, %s) AS n
"""
_HISTORY = """
INSERT INTO rowlock.processing_history (id, token, created_at, settled_at, attempt, priority, deaths, redrives,
                                        status, flow_name, record_key, payload, result)
SELECT -n, 1, now(), now(), 1, 0, 0, 0, 'completed', %s, n::text,
       json_build_object('id', n, 'note', repeat('x', 60)), 'null'
FROM generate_series(1, %s) AS n
"""


class Table:
    """A ledger of a certain size, one connection to it, and the times it took."""

    def __init__(
        self, stack: ExitStack, server: Server, name: str, *, pending: int, history: int = 0
    ) -> None:
        _, url = stack.enter_context(server.ledger(f"claims_{name}"))
        self.connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        # No statistics but those we ask for.
        for table in ("processing_queue", "processing_history"):
            self.connection.execute(f"ALTER TABLE rowlock.{table} SET (autovacuum_enabled = off)")
        self.connection.execute(_PENDING, (FLOW, pending))
        if history:
            self.connection.execute(_HISTORY, (FLOW, history))
        self.holder = register(self.connection)

    def sample(self, position: tuple[int, int] = START) -> tuple[float, float]:
        """Milliseconds of a claim, and of an exchange that settles it and claims the next; both undone untimed."""
        with self.connection.transaction(force_rollback=True):
            began = time.perf_counter()
            claimed = exchange(self.connection, self.holder, [], _CLAIM, position)
            between = time.perf_counter()
            done = [(row[1], row[2]) for row in claimed]
            exchange(self.connection, self.holder, done, _CLAIM, (0, max(id_ for id_, _ in done)))
            ended = time.perf_counter()
        return (between - began) * 1000, (ended - between) * 1000


def measure(server: Server, many: int, samples: int) -> dict[str, Any]:
    """Median milliseconds, the tables taking turns; first without statistics, then analysed."""
    figures: dict[str, Any] = {}
    with ExitStack() as stack:
        tables = {
            "small": Table(stack, server, "small", pending=_SMALL),
            "pending_many": Table(stack, server, "pending", pending=many),
            "history_many": Table(stack, server, "history", pending=_SMALL, history=many),
        }
        for state in ("not_analysed", "analysed"):
            if state == "analysed":
                for table in tables.values():
                    table.connection.execute("ANALYZE")
            figures[state] = _in_turn(tables, samples)
    return figures


def _in_turn(tables: dict[str, Table], samples: int) -> dict[str, dict[str, float]]:
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in tables}
    for _ in range(samples):
        for name, table in tables.items():
            taken[name].append(table.sample())
    warm = samples // 4
    return {
        name: {
            "claim_ms": median(claim for claim, _ in times[warm:]),
            "exchange_ms": median(settle for _, settle in times[warm:]),
        }
        for name, times in taken.items()
    }


def under_snapshot(server: Server, completions: int, samples: int) -> dict[str, float]:
    """One transaction keeps every dead row visible: what a claim costs from the start, and from where the last ended."""
    with ExitStack() as stack:
        table = Table(stack, server, "snapshot", pending=completions + _SMALL)
        url = table.connection.info.dsn
        old = stack.enter_context(psycopg.connect(url, autocommit=True))
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM rowlock.processing_queue")
        drain(table.connection, table.holder, completions)
        last = table.connection.execute("SELECT min(id) - 1 FROM rowlock.processing_queue").fetchone()[0]
        figures = {
            "from_the_start_ms": median(table.sample()[0] for _ in range(samples)),
            "remembered_ms": median(table.sample((0, last))[0] for _ in range(samples)),
        }
        old.execute("ROLLBACK")
    return figures
