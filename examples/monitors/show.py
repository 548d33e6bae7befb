"""Three instances, two kills, and a count at the end: nothing was found, alerted or reported twice.

`python show.py` takes about fifteen seconds. It makes its tables, starts `rowlock run monitors` three times, kills
whoever runs a monitor, and tells what happens.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from monitors import app
from sqlalchemy import text

# No unique keys where things are counted: what happened twice would show.
TABLES = (
    "CREATE TABLE edgar_filings (accession_number varchar(40) PRIMARY KEY, company text)",
    "CREATE TABLE halt_events (ticker varchar(10), halt_time integer, PRIMARY KEY (ticker, halt_time))",
    "CREATE TABLE polls (service text, token bigint)",
    "CREATE TABLE sent_alerts (message text)",
    "CREATE TABLE reports (tick text, filings integer)",
)


def main() -> int:
    with app:
        with app.ledger.engine.begin() as connection:
            for table in TABLES:
                connection.execute(text(table))
        command = [sys.executable, "-m", "rowlock.cli", "run", "monitors"]
        with Path("instances.log").open("wb") as log:
            fleet = [subprocess.Popen(command, stderr=log) for _ in range(3)]
        try:
            for service in ("edgar_monitor", "halt_monitor"):
                kill_the_holder(service)
            wait_for(lambda: count("SELECT count(*) FROM reports") >= 4, "four reports")
        finally:
            end(fleet)
        return verdict()


def kill_the_holder(service: str) -> None:
    wait_for(lambda: holder(service) and polls(service) > 2, f"{service} to poll")
    who = holder(service)
    print(f"{service} runs on instance {who.id} (pid {who.pid}), under token {who.token}")
    os.kill(who.pid, signal.SIGKILL)
    print(f"SIGKILL: instance {who.id} is gone")
    wait_for(lambda: (now := holder(service)) and now.token > who.token, "somebody to take over")
    now = holder(service)
    print(f"{service} runs on instance {now.id} (pid {now.pid}), under token {now.token}\n")


class Holder(NamedTuple):
    id: int
    pid: int
    token: int


def holder(service: str) -> Holder | None:
    rows = [row for row in app.ledger.run("services") if row.service_name == service and row.holder]
    alive = {row.id: row for row in app.ledger.run("instances", everyone=False, limit=100)}
    if not rows or rows[0].holder not in alive or rows[0].seconds_left <= 0:
        return None
    return Holder(rows[0].holder, alive[rows[0].holder].pid, rows[0].token)


def polls(service: str) -> int:
    return count("SELECT count(*) FROM polls WHERE service = :service", service=service)


def verdict() -> int:
    with app:
        found = count("SELECT count(*) FROM edgar_filings") + count("SELECT count(*) FROM halt_events")
        alerts = count("SELECT count(*) FROM sent_alerts")
        waiting = live_alerts()
        alerts_twice = alerts - count("SELECT count(DISTINCT message) FROM sent_alerts")
        reports = count("SELECT count(*) FROM reports")
        reports_twice = reports - count("SELECT count(DISTINCT tick) FROM reports")
    lost = found - alerts - waiting
    print(
        f"events found: {found}; alerts sent: {alerts}, waiting: {waiting}, twice: {alerts_twice}, lost: {lost}"
    )
    print(f"reports: {reports}, twice: {reports_twice}")
    return int(bool(alerts_twice or reports_twice or lost))


def live_alerts() -> int:
    rows = [row for row in app.ledger.run("flows") if row.flow_name == "alert"]
    return sum(row.ready + row.waiting + row.processing + row.retry_wait for row in rows)


def count(query: str, **parameters: str) -> int:
    with app.ledger.engine.connect() as connection:
        return int(connection.execute(text(query), parameters).scalar() or 0)


def wait_for(condition: Callable[[], object], what: str) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        if time.monotonic() > give_up:
            raise SystemExit(f"waited 60 s for {what}; see instances.log")
        time.sleep(0.1)


def end(fleet: list[subprocess.Popen]) -> None:
    for process in fleet:
        if process.poll() is None:
            process.terminate()
    for process in fleet:
        process.wait(30)


if __name__ == "__main__":
    sys.exit(main())
