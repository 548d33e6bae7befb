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
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any

import httpx2
import psycopg

from bench.enqueue import copy_rows, plain_table
from bench.server import ROOT, Server
from rowlock.ledger.rows import Failure, Held, Release, Wish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlock import Rowlock
    from rowlock.ledger.ledger import Ledger

EXPORTER = "levels"
_BATCH = 200
_RUNNING = 20
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
                _settle_half(app.ledger, sizes, retry=state == "retrying")
                for size, key in jobs.items():
                    job = app.jobs.get(key)
                    waiting = job.retry_wait if state == "retrying" else job.pending
                    found_all = (job.done, job.running, waiting)
                    assert found_all == (size // 2, _RUNNING, size - size // 2 - _RUNNING)  # noqa: S101
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


def _settle_half(ledger: Ledger, sizes: tuple[int, ...], *, retry: bool) -> None:
    """Half of each job is done; of the rest a few run, and the others wait: for a worker, or for another try."""
    holder = ledger.run(
        "instance_register", name="bench", hostname="here", pid=1, version="0", roles="", lease=3600.0
    )[0].id
    held: list[Held] = []
    while len(held) < sum(sizes):
        held += ledger.exchange(holder, [], [Wish(f"export.{EXPORTER}", _BATCH, -32768, 0)])[1]
    result = json.dumps({"path": "file:///x", "rows": 1, "bytes": 1, "sha256": "0" * 64, "reused": False})
    failure = (False, 3600.0, "no levels yet", "failed", "LookupError", "no levels yet", None, "f")
    inputs = iter(sorted(held, key=lambda one: one.id))  # a job's are one after the other
    for size in sizes:
        own = list(islice(inputs, size))
        for done in _batches(own[: size // 2]):
            with ledger.transaction() as transaction:
                for one in done:
                    ledger.complete(transaction, id=one.id, token=one.token, result=result)
        for rest in _batches(own[size // 2 + _RUNNING :]):
            if retry:
                ledger.fail(holder, [Failure(one.id, one.token, *failure) for one in rest])
            else:
                ledger.release(holder, [Release(one.id, one.token, 0.0) for one in rest])


def _batches(held: list[Held]) -> Iterator[list[Held]]:
    return (held[start : start + _BATCH] for start in range(0, len(held), _BATCH))


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
