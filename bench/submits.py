"""How fast jobs are taken, and how fast they answer: inputs against a COPY of the same rows, jobs as they grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

import httpx2
import psycopg

from bench.enqueue import copy_rows, plain_table
from bench.server import ROOT, Server
from rowlock.ledger.rows import Failure, Release, Wish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlock import Rowlock
    from rowlock.ledger.ledger import Ledger

EXPORTER = "levels"
_BATCH = 200
_RUNNING = 20
_LATER = 3600.0
_REPEATS = 5


def declared(app: Rowlock) -> Rowlock:
    """The app that takes the jobs; nobody makes their files."""
    app.exporter(EXPORTER)(lambda _fields: [])
    return app


def inputs(count: int, mark: str = "") -> list[dict[str, Any]]:
    return [
        {"indexKey": f"INDEX{mark}{n}", "effectiveDate": 20240101 + n % 28, "asofindicator": "CLS"}
        for n in range(count)
    ]


def submitting(server: Server, count: int) -> dict[str, float]:
    """Seconds, the median of several: a COPY, a submission in this program, one over HTTP; they take turns."""
    rows = inputs(count)
    body = json.dumps({"inputs": rows}).encode()
    seconds: dict[str, list[float]] = {"copy": [], "submit": [], "http": []}
    with (
        server.ledger("submits") as (app, url),
        psycopg.connect(url, autocommit=True) as connection,
        _serving(url) as client,
    ):
        declared(app)
        app.jobs.submit(rows[:10])
        client.post("/jobs", json={"inputs": rows[:10]}).raise_for_status()
        for _ in range(_REPEATS):
            plain_table(connection)
            seconds["copy"].append(_timed(lambda: copy_rows(connection, rows, _key, job="1")))
            connection.execute("DROP TABLE plain")
            seconds["submit"].append(_timed(lambda: app.jobs.submit(rows)))
            seconds["http"].append(_timed(lambda: _post(client, body)))
    return {name: median(taken) for name, taken in seconds.items()}


def looking(server: Server, sizes: tuple[int, ...], samples: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of GET /jobs/{id} for jobs of these sizes: none, or half of their inputs settled."""
    found = {}
    for state in ("waiting", "running", "retrying"):
        with server.ledger("looks") as (app, url), _serving(url) as client:
            declared(app)
            jobs = {size: app.jobs.submit(inputs(size, f"{size}_"))[0].key for size in sizes}
            if state != "waiting":
                for size, key in jobs.items():  # the oldest first, as claims are
                    _settle_half(app.ledger, size, retry=state == "retrying")
                    assert app.jobs.get(key).done == size // 2  # noqa: S101 - or the figures mean nothing
            found[f"{state}_dead_rows"] = _in_turn(client, jobs, samples)
            with psycopg.connect(url, autocommit=True) as connection:  # as autovacuum does every minute
                connection.execute("VACUUM ANALYZE rowlock.processing_queue")
            found[state] = _in_turn(client, jobs, samples)
    return found


def _in_turn(client: httpx2.Client, jobs: dict[int, str], samples: int) -> dict[str, float]:
    taken: dict[int, list[float]] = {size: [] for size in jobs}
    for _ in range(samples):
        for size, key in jobs.items():
            taken[size].append(_timed(lambda: client.get(f"/jobs/{key}").raise_for_status()) * 1000)  # noqa: B023
    return {str(size): median(times[samples // 4 :]) for size, times in taken.items()}


def _settle_half(ledger: Ledger, size: int, *, retry: bool) -> None:
    """Half of the oldest job is done; of the rest a few run, and the others wait: for a worker, or for another try."""
    holder = ledger.run(
        "instance_register", name="bench", hostname="here", pid=1, version="0", roles="", lease=3600.0
    )[0].id
    result = json.dumps({"path": "file:///x", "rows": 1, "bytes": 1, "sha256": "0" * 64, "reused": False})
    claimed = 0
    while claimed < size:
        limit = min(_BATCH, size - claimed)
        _, held = ledger.exchange(holder, [], [Wish(f"export.{EXPORTER}", limit, -32768, 0)])
        rest = held[1::2] if claimed else held[1 + 2 * _RUNNING :: 2]
        claimed += len(held)
        with ledger.transaction() as transaction:
            for one in held[::2]:
                ledger.complete(transaction, id=one.id, token=one.token, result=result)
        if retry:
            what = (False, _LATER, "no levels yet", "failed", "LookupError", "no levels yet", None, "f")
            ledger.fail(holder, [Failure(one.id, one.token, *what) for one in rest])
        else:
            ledger.release(holder, [Release(one.id, one.token, _LATER, None) for one in rest])


@contextmanager
def _serving(url: str) -> Iterator[httpx2.Client]:
    """`rowlock serve` as a process of its own, and one connection to it."""
    environment = {**os.environ, "ROWLOCK_LEDGER_URL": url}
    process = subprocess.Popen(
        [sys.executable, "-m", "rowlock.cli", "serve", "bench.jobs_app", "--port", "0"],
        cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    log: Any = process.stderr
    try:
        address = next(line.rpartition(" serves ")[2].strip() for line in log if " serves " in line)
        # Its log is read by nobody from here on: it must not fill the pipe.
        threading.Thread(target=lambda: deque(log, 0), daemon=True).start()
        with httpx2.Client(base_url=address, timeout=120) as client:
            yield client
    finally:
        process.terminate()
        process.wait()


def _post(client: httpx2.Client, body: bytes) -> None:
    client.post("/jobs", content=body, headers={"Content-Type": "application/json"}).raise_for_status()


def _key(row: dict[str, Any]) -> str:
    return f"J20260110_000777/{row['indexKey']}/{row['effectiveDate']}/{row['asofindicator']}"


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
