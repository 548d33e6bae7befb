"""A real worker process: drains the flow with a no-op handler, or waits for single records and reports their start.

Usage: python -m bench.rowlock_side (async|sync|idle) URL
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

from bench.server import FLOW
from rowlock import Rowlock

if TYPE_CHECKING:
    from rowlock import Record


async def async_handler(_record: Record) -> None:
    pass


def sync_handler(_record: Record) -> None:
    pass


async def reporting_handler(_record: Record) -> None:
    os.write(sys.stdout.fileno(), f"{time.monotonic_ns()}\n".encode())


HANDLERS = {"async": async_handler, "sync": sync_handler, "idle": reporting_handler}


def main() -> None:
    kind, url = sys.argv[1:]
    app = Rowlock(url)
    app.flow(FLOW)(HANDLERS[kind])
    worker = app.worker()
    started = time.process_time()
    worker.start()
    # A paused flow counts as empty: the order to end when it is comes together with its resumption.
    sys.stdin.readline()
    if kind == "idle":
        worker.stop()
    worker._until_empty = True  # noqa: SLF001
    worker.join()
    print(json.dumps({"cpu_seconds": time.process_time() - started}))


if __name__ == "__main__":
    main()
