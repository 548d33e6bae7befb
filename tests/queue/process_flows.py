"""Flows that run in child processes; a module of its own, because children import it."""

from __future__ import annotations

import os
import signal
import threading

from rowlock import Backoff, Reject, Rowlock

app = Rowlock()


@app.flow("pids", executor="process", concurrency=2)
def pids(record):
    return {"pid": os.getpid(), "n": record.payload["n"]}


@app.flow(
    "rough",
    executor="process",
    concurrency=2,
    timeout=2,
    max_attempts=2,
    max_deaths=2,
    backoff=Backoff(0.01, 0.02),
)
def rough(record):
    match record.payload:
        case "raise":
            raise ValueError("in the child")
        case "reject":
            raise Reject("never")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            threading.Event().wait()
        case "effect":
            with record.transaction() as tx:
                tx.execute("INSERT INTO effects VALUES (:id)", {"id": record.id})
        case "batch":
            record.complete("by hand")


@app.flow("limited_pids", executor="process", concurrency=2, limit=app.limit("api", rate="1000/s"))
def limited_pids(record):
    return {"pid": os.getpid()}


@app.flow(
    "hourly",
    executor="process",
    concurrency=4,
    timeout=0.1,
    limit=app.limit("hourly", rate="1/h", concurrency=5),
)
def hourly(record):
    return {"pid": os.getpid()}
