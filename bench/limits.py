"""A rate that several processes share: how many uses start, by the database's clock, over any window.

Usage: python -m bench.limits [--rate 50] [--processes 4] [--threads 4] [--seconds 20] [--ledger sqlite|postgresql]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rowlock import Rowlock, clock
from rowlock.databases.local_postgres import LocalPostgres
from rowlock.ledger.ledger import Ledger
from rowlock.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent


class Start(NamedTuple):
    """A use that began at some time between these two, by the database's clock."""

    earliest: float
    latest: float
    late: float  # after the moment that was its own, at most

    @property
    def due(self) -> Start:
        """As it would have been without any delay of its machine's."""
        return self._replace(earliest=self.earliest - self.late)


def use(rate: str, threads: int, seconds: float) -> list[Start]:
    """One process: its threads want as much as they can get. Waits for a line on stdin before it begins."""
    starts: list[Start] = []
    with Rowlock() as app:
        limit = app.limit("bench", rate=rate)
        app.locks  # noqa: B018 - registered before it begins
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds

        def work() -> None:
            while time.monotonic() < end:
                with limit as permit:
                    began = clock.monotonic()
                    now = app.ledger.now()
                    starts.append(Start(now - (clock.monotonic() - began), now, began - permit.due))

        running = [threading.Thread(target=work) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    return starts


def run(settings: Settings, rate: str, *, processes: int, threads: int, seconds: float) -> list[Start]:
    """Several processes at once on one ledger; every start, in order."""
    environment = os.environ | {
        "ROWLOCK_LEDGER_URL": settings.ledger_url,
        "ROWLOCK_LEDGER_SCHEMA": settings.ledger_schema,
    }
    command = [sys.executable, "-m", "bench.limits", "--side", rate, str(threads), str(seconds)]
    sides = [
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    try:
        for side in sides:
            side.stdout.readline()
        for side in sides:
            side.stdin.write("go\n")
            side.stdin.flush()
        found = [Start(*pair) for side in sides for pair in json.loads(side.communicate()[0])]
    finally:
        for side in sides:
            if side.poll() is None:
                side.kill()
                side.communicate()
    return sorted(found)


def excess(starts: list[Start], rate: float, burst: int = 1) -> float:
    """By how many uses the worst of all windows is above rate · window + burst; at most 0 when it holds."""
    worst = -float("inf")
    for begin in starts:
        ends = sorted(start.latest for start in starts if start.earliest >= begin.earliest)
        used = max(number - rate * (end - begin.earliest) for number, end in enumerate(ends, start=1))
        worst = max(worst, used - burst)
    return worst


@contextmanager
def ledger(kind: str) -> Iterator[Settings]:
    """A migrated ledger of its own."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "sqlite":
            yield _migrated(Settings(ledger_url=f"sqlite:///{folder}/ledger.db"))
        else:
            with LocalPostgres(durable=True) as server:
                yield _migrated(Settings(ledger_url=server.url))


def _migrated(settings: Settings) -> Settings:
    with Ledger.open(settings) as opened:
        opened.schema.migrate()
    return settings


def main() -> None:
    if sys.argv[1:2] == ["--side"]:
        rate, threads, seconds = sys.argv[2:]
        print(json.dumps(use(rate, int(threads), float(seconds))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--ledger", choices=["sqlite", "postgresql"])
    chosen = parser.parse_args()
    for kind in [chosen.ledger] if chosen.ledger else ["sqlite", "postgresql"]:
        with ledger(kind) as settings:
            starts = run(
                settings,
                f"{chosen.rate}/s",
                processes=chosen.processes,
                threads=chosen.threads,
                seconds=chosen.seconds,
            )
        allowed = chosen.rate * chosen.seconds
        within = [start for start in starts if start.latest <= starts[0].latest + chosen.seconds]
        print(
            f"{kind}: {len(within)} starts within {chosen.seconds:g} s of {allowed:g} allowed "
            f"({len(within) / allowed:.1%}); the worst of all windows is {excess(starts, chosen.rate):+.1f} "
            f"uses against rate · window + 1, and {excess([start.due for start in starts], chosen.rate):+.1f} for their "
            f"moments; {max(start.late for start in starts) * 1000:.0f} ms was the latest start"
        )


if __name__ == "__main__":
    main()
