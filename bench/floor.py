"""The raw floor: the very statement that a worker runs, in a bare psycopg loop. No handler, no runtime."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import psycopg

from bench.server import FLOW
from rowlock.ledger.statements import load_statements

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH = 500
START = (-32768, 0)
STATEMENTS = load_statements("postgresql", "rowlock")


def register(connection: psycopg.Connection[Any]) -> int:
    """An instance row of its own, whose lease outlasts the run."""
    row = connection.execute(
        STATEMENTS["instance_register"],
        {"name": "floor", "hostname": "", "pid": 0, "version": "0", "roles": "", "lease": 3600.0},
    ).fetchone()
    return int(row[0])


def exchange(
    connection: psycopg.Connection[Any],
    holder: int,
    done: Sequence[tuple[int, int]],
    limit: int,
    position: tuple[int, int] = START,
) -> list[tuple[Any, ...]]:
    """Settles and claims; the rows claimed."""
    rows = connection.execute(
        STATEMENTS["exchange"],
        {
            "ids": [id_ for id_, _ in done],
            "tokens": [token for _, token in done],
            "results": ["null"] * len(done),
            "flows": [FLOW] if limit else [],
            "limits": [limit] if limit else [],
            "ranks": [position[0]] if limit else [],
            "afters": [position[1]] if limit else [],
            "holder": holder,
        },
    ).fetchall()
    return [row for row in rows if row[1] is not None]


def drain(
    connection: psycopg.Connection[Any], holder: int, most: int = sys.maxsize, batch: int = BATCH
) -> int:
    """Claims and settles until nothing is left, or `most` are settled; how many were."""
    settled, done, position = 0, [], START
    while True:
        claimed = exchange(connection, holder, done, batch if settled + len(done) < most else 0, position)
        settled += len(done)
        if not claimed:
            return settled
        done = [(row[1], row[2]) for row in claimed]
        position = (0, max(id_ for id_, _ in done))


def main() -> None:
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        holder = register(connection)
        started = time.process_time()
        settled = drain(connection, holder)
    print(json.dumps({"settled": settled, "cpu_seconds": time.process_time() - started}))


if __name__ == "__main__":
    main()
