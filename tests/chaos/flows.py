"""The workload of the chaos tests: every effect is one row in a table without a unique key."""

from __future__ import annotations

import os
import signal
import time

from rowlock import Backoff, Rowlock

app = Rowlock()
EFFECTS = (
    "effects" if app.settings.ledger_url.startswith("sqlite") else f'"{app.settings.ledger_schema}".effects'
)
INSERT = f"INSERT INTO {EFFECTS} (record_id, token, pid) VALUES (:id, :token, :pid)"


@app.flow("effect", max_attempts=50, max_deaths=50, backoff=Backoff(0.01, 0.1), concurrency=4)
def effect(record):
    time.sleep(record.payload.get("seconds", 0))
    with record.transaction() as tx:
        tx.execute(INSERT, {"id": record.id, "token": record.token, "pid": os.getpid()})


@app.flow("poison", concurrency=4)
def poison(record):
    if record.payload == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.005)


@app.flow("patient", concurrency=2)
def patient(record):
    record.heartbeat(progress=0.1)  # it has started, for all to see
    time.sleep(record.payload)
