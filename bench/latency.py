"""How soon an idle worker starts a record: against the bare NOTIFY round trip, sample by sample in turn.

A bare NOTIFY writes nothing, so nothing waits for the disk. Work that survives a crash waits twice, when it is
accepted and when it is claimed; a bare pair of statements that does just that is measured as well ("durable").

Usage as a side script: python -m bench.latency (notify|durable) URL — listens, and prints when each one came.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import psycopg

from bench.server import FLOW, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.server import Server

_INSERT = "WITH i AS (INSERT INTO bare DEFAULT VALUES) SELECT pg_notify('durable', '')"
_CLAIM = "UPDATE bare SET claimed = true WHERE id = (SELECT max(id) FROM bare)"
# Longer than a burst of enqueues is coalesced for: the worker is idle at every sample.
_PAUSE = 0.02
_WARM_UP = 10


def measure(server: Server, samples: int) -> dict[str, Any]:
    """Milliseconds from before the call to the start of the handler (or the arrival of the notification)."""
    taken: dict[str, list[float]] = {"notify": [], "durable": [], "pickup": []}
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (id bigserial PRIMARY KEY, claimed boolean)")
        notify = _start("bench.latency", "notify", url)
        durable = _start("bench.latency", "durable", url)
        worker = _start("bench.rowlock_side", "idle", url)
        _wait_for(connection, 3)
        for _ in range(samples + _WARM_UP):
            taken["notify"].append(_sample(notify, lambda: connection.execute("NOTIFY notify")))
            taken["durable"].append(_sample(durable, lambda: connection.execute(_INSERT)))
            taken["pickup"].append(_sample(worker, lambda: app.enqueue(FLOW, {"id": 1})))
        worker.communicate(b"end\n", timeout=30)
        for listener in (notify, durable):
            listener.terminate()
            listener.communicate(timeout=30)
        time.sleep(_PAUSE)  # the last enqueue may still have something to announce
    return {name: _summary(values[_WARM_UP:]) for name, values in taken.items()}


def _start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _wait_for(connection: psycopg.Connection[Any], listeners: int) -> None:
    """Until both the worker and the bare listener listen."""
    for _ in range(300):
        query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        if connection.execute(query).fetchone()[0] >= listeners:
            return
        time.sleep(0.1)
    raise RuntimeError("nobody listens")


def _sample(process: subprocess.Popen[bytes], act: Callable[[], object]) -> float:
    time.sleep(_PAUSE)
    began = time.monotonic_ns()
    act()
    return (int(process.stdout.readline()) - began) / 1e6


def _summary(values: list[float]) -> dict[str, float]:
    return {"p50": median(values), "p99": quantiles(values, n=100)[98], "samples": len(values)}


def main() -> None:
    """One notification, one line; until it is terminated."""
    kind, url = sys.argv[1:]
    with (
        psycopg.connect(url, autocommit=True) as other,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(f"LISTEN {kind}")
        for _notification in connection.notifies():
            if kind == "durable":
                other.execute(_CLAIM)
            print(time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    main()
