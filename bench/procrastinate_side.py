"""Procrastinate: concurrency 20, an analysed table, a window of a few seconds (it would take minutes to empty).

Runs in a venv of its own. Usage: python -m bench.procrastinate_side URL COUNT SECONDS. Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib.metadata import version

import procrastinate

LOAD = 1000
CONCURRENCY = 20
WARM_UP = 0.5


async def succeeded(app: procrastinate.App) -> int:
    rows = await app.connector.execute_query_all_async(
        "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status = 'succeeded'"
    )
    return rows[0]["jobs"]


async def main() -> None:
    url, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    connector = procrastinate.PsycopgConnector(conninfo=url, max_size=CONCURRENCY + 5)
    app = procrastinate.App(connector=connector)

    @app.task(name="bench")
    async def handle(**_payload) -> None:
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, count, LOAD):
            piece = [
                {"id": number, "name": f"customer {number}", "note": "x" * 48, "flag": number % 2 == 0}
                for number in range(start, min(count, start + LOAD))
            ]
            await handle.batch_defer_async(*piece)
        await connector.execute_query_async("ANALYZE")
        worker = asyncio.create_task(
            app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
        )
        await asyncio.sleep(WARM_UP)
        before, began = await succeeded(app), time.perf_counter()
        await asyncio.sleep(seconds)
        after, ended = await succeeded(app), time.perf_counter()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    rate = (after - before) / (ended - began)
    emptied = after == count
    print(json.dumps({"rate": rate, "emptied": emptied, "version": version("procrastinate")}))


if __name__ == "__main__":
    asyncio.run(main())
