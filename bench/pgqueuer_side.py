"""PgQueuer at its best setting: asyncpg, uvloop, batches of 500; its own log as it is by default.

Runs in a venv of its own. Usage: python -m bench.pgqueuer_side URL COUNT. Prints one JSON line.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

BATCH = 500
LOAD = 5000


class TimedQueries(Queries):
    """Notes when the first jobs were claimed, and when the last ones were settled."""

    first = 0.0
    last = 0.0
    settled = 0

    async def dequeue(self, *args, **kwargs):
        jobs = await super().dequeue(*args, **kwargs)
        if jobs and not self.first:
            self.first = time.perf_counter()
        return jobs

    async def log_jobs(self, job_status):
        await super().log_jobs(job_status)
        self.settled += len(job_status)
        self.last = time.perf_counter()


def payload(number: int) -> bytes:
    body = {"id": number, "name": f"customer {number}", "note": "x" * 48, "flag": number % 2 == 0}
    return json.dumps(body).encode()


async def load(queries: Queries, count: int) -> None:
    for start in range(0, count, LOAD):
        piece = [payload(number) for number in range(start, min(count, start + LOAD))]
        await queries.enqueue(["bench"] * len(piece), piece, [0] * len(piece))


async def wal_position(connection) -> int:
    return int(await connection.fetchval("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"))


async def main() -> None:
    url, count = sys.argv[1], int(sys.argv[2])
    connection = await asyncpg.connect(url)
    queries = TimedQueries(AsyncpgDriver(connection))
    await queries.install()
    await load(queries, count)
    await connection.execute("ANALYZE")
    manager = QueueManager(queries)

    @manager.entrypoint("bench")
    async def handle(_job) -> None:
        pass

    before = await wal_position(connection)
    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    if queries.settled != count:
        raise RuntimeError(f"{queries.settled} of {count} jobs were settled")
    observer = await asyncpg.connect(url)
    wal = await wal_position(observer) - before
    rate = count / (queries.last - queries.first)
    print(json.dumps({"rate": rate, "wal_bytes": wal / count, "version": version("pgqueuer")}))


if __name__ == "__main__":
    uvloop.run(main())
