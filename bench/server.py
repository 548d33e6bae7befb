"""The server that every contestant shares: durable, ours alone, a new database for each measurement."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psycopg

from rowlock import Rowlock
from rowlock.databases.local_postgres import LocalPostgres

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
FLOW = "bench"


def say(text: str) -> None:
    """Progress, for whoever waits."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


class Server:
    """fsync on, synchronous_commit on: what is measured is what a production server would do."""

    def __init__(self, options: dict[str, str] | None = None) -> None:
        self._local = LocalPostgres(durable=True, options={"shared_buffers": "1GB", **(options or {})})

    def __enter__(self) -> Self:
        self._local.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._local.__exit__()

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """A fresh database, so that no contestant inherits another's dead rows; its URL."""
        url = self._local.url.rsplit("/", 1)[0] + f"/{name}"
        with psycopg.connect(self._local.url, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
            # A checkpoint now, none during the measurement: no full page images in anybody's WAL.
            admin.execute("CHECKPOINT")
            try:
                yield url
            finally:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def ledger(self, name: str = "rowlock_bench") -> Iterator[tuple[Rowlock, str]]:
        """A fresh ledger with one flow in it."""
        with self.database(name) as url, Rowlock(url) as app:
            app.settings  # noqa: B018 - read before anything is timed
            migrate(app)
            yield app, url

    def version(self) -> str:
        with psycopg.connect(self._local.url) as connection:
            return str(connection.execute("SHOW server_version").fetchone()[0])


def migrate(app: Rowlock) -> None:
    """The ledger's tables, and the flow that everything here belongs to."""
    from rowlock.ledger.ledger import Ledger  # noqa: PLC0415 - not before the tables are there

    with Ledger.open(app.settings) as ledger:
        ledger.schema.migrate()
        ledger.run("flow_register", flow=FLOW, max_attempts=5, max_deaths=3)


def payloads(count: int) -> list[dict[str, Any]]:
    """About 100 bytes of JSON each."""
    return [{"id": n, "name": f"customer {n}", "note": "x" * 48, "flag": n % 2 == 0} for n in range(count)]


def preload(app: Rowlock, url: str, count: int) -> None:
    """Enqueues the records to drain; the tables are analysed, as they are for every contestant."""
    app.enqueue(FLOW, payloads(count), key=lambda payload: payload["id"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def wal_position(connection: psycopg.Connection[Any]) -> int:
    return int(connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").fetchone()[0])


def run_side(python: str | Path, module: str, *arguments: str) -> dict[str, Any]:
    """Runs a side script in its own process and interpreter; the JSON line it ends with."""
    done = subprocess.run(
        [str(python), "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    if done.returncode:
        raise RuntimeError(f"{module} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
