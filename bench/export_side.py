"""One export in a process of its own, so that its memory is its own: python -m bench.export_side KIND URL FOLDER."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from uuid import uuid4

from rowlock.databases.manager import DatabaseManager
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.query import SqlQuery
from rowlock.jobs.storage import ArtifactStore
from rowlock.jobs.writing import write_export
from rowlock.settings import Settings

INPUT = {"indexKey": "ABC", "effectiveDate": 20240202, "asofindicator": "CLS"}


def main() -> None:
    format_, url, folder = sys.argv[1:4]
    options = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    query = SqlQuery("source", "SELECT * FROM levels WHERE asof = :asofindicator")
    exporter = Exporter(name="levels", produce=query, format=format_)
    store = ArtifactStore.open(folder, **options)
    with DatabaseManager(Settings(databases={"source": {"url": url}})) as databases:
        began, cpu = time.perf_counter(), time.process_time()
        written = write_export(
            exporter, exporter.validate(INPUT), store, prefix=f"bench/{uuid4().hex}", databases=databases
        )
        seconds = time.perf_counter() - began
    store.delete(written.path)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": time.process_time() - cpu,
                "rss_mb": _peak_mb(),
                "rows": written.rows,
                "mb": written.bytes / 1e6,
            }
        )
    )


def _peak_mb() -> float:
    """Of this program alone; getrusage would count what its parent had when it was started."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
