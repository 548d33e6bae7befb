"""How soon an idle worker starts a record: against the bare NOTIFY round trip, sample by sample in turn.

Usage as a side script: python -m bench.latency URL — listens, and prints when each notification came.
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

_CHANNEL = "bare_notify"
# Longer than a burst of enqueues is coalesced for: the worker is idle at every sample.
_PAUSE = 0.02
_WARM_UP = 10


def measure(server: Server, samples: int) -> dict[str, Any]:
    """Milliseconds from before the call to the start of the handler (or the arrival of the notification)."""
    taken: dict[str, list[float]] = {"notify": [], "pickup": []}
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        listener = _start("bench.latency", url)
        worker = _start("bench.rowlock_side", "idle", url)
        _wait_for(connection, 2)
        for _ in range(samples + _WARM_UP):
            taken["notify"].append(_sample(listener, lambda: connection.execute(f"NOTIFY {_CHANNEL}")))
            taken["pickup"].append(_sample(worker, lambda: app.enqueue(FLOW, {"id": 1})))
        worker.communicate(b"end\n", timeout=30)
        listener.terminate()
        listener.communicate(timeout=30)
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
    """One notification, one line; until the connection or the pipe is gone."""
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        connection.execute(f"LISTEN {_CHANNEL}")
        for _notification in connection.notifies():
            print(time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    main()
