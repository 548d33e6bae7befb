"""How fast records are drained: the floor, one worker, two workers; timed by the ledger's own history."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psycopg

from bench.server import FLOW, ROOT, preload, run_side, wal_position

if TYPE_CHECKING:
    from bench.server import Server
    from rowlock import Rowlock

# From the first claim to the last settling: the start of a process does not count.
_TIMES = """
SELECT count(*), extract(epoch FROM max(settled_at) - min(claimed_at))
FROM rowlock.processing_history WHERE status = 'completed'
"""
# When the given shares of the records were settled.
_MILESTONES = """
SELECT extract(epoch FROM t - min(t) OVER ()) FROM unnest((
    SELECT percentile_disc(ARRAY[0.05, 0.25, 0.8, 1.0]) WITHIN GROUP (ORDER BY settled_at)
    FROM rowlock.processing_history)) AS t ORDER BY t
"""


def floor(server: Server, count: int) -> dict[str, float]:
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        preload(app, url, count)
        side = run_side(sys.executable, "bench.floor", url)
        return _figures(connection, count, side["cpu_seconds"])


def rowlock(server: Server, count: int, *, kind: str, processes: int = 1) -> dict[str, float]:
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        preload(app, url, count)
        before = wal_position(connection)
        cpu = _work(app, connection, url, kind, processes)
        return _figures(connection, count, cpu) | {"wal_bytes": (wal_position(connection) - before) / count}


def long_drain(server: Server, count: int) -> dict[str, float]:
    """Rates of the first fifth (after a twentieth of warm-up) and of the last."""
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        preload(app, url, count)
        cpu = _work(app, connection, url, "async", 1)
        warm, first, late, end = (float(row[0]) for row in connection.execute(_MILESTONES))
        fifth = count * 0.2
        return _figures(connection, count, cpu) | {
            "start": fifth / (first - warm),
            "end": fifth / (end - late),
        }


def _work(app: Rowlock, connection: psycopg.Connection[Any], url: str, kind: str, processes: int) -> float:
    """Starts the workers while the flow is paused, so that all of them work from the first record on."""
    app.ledger.set_flow_state(FLOW, "paused", "until every worker is there")
    command = [sys.executable, "-m", "bench.rowlock_side", kind, url]
    workers = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(processes)
    ]
    while _instances(connection) < processes:
        if any(worker.poll() is not None for worker in workers):
            raise RuntimeError("a worker ended before it began")
        time.sleep(0.05)
    time.sleep(0.3)  # they listen by now
    app.ledger.set_flow_state(FLOW, "active", None)
    for worker in workers:
        worker.stdin.write(b"end when it is empty\n")
        worker.stdin.flush()
    return sum(json.loads(worker.communicate(timeout=120)[0])["cpu_seconds"] for worker in workers)


def _instances(connection: psycopg.Connection[Any]) -> int:
    return int(connection.execute("SELECT count(*) FROM rowlock.service_instances").fetchone()[0])


def _figures(connection: psycopg.Connection[Any], count: int, cpu: float) -> dict[str, float]:
    settled, seconds = connection.execute(_TIMES).fetchone()
    if settled != count:
        raise RuntimeError(f"{settled} of {count} records were settled")
    return {"rate": count / float(seconds), "client_cpu_us": cpu / count * 1e6}
