"""A worker of export jobs that stands still at the moment it is told, so that it can be killed or stopped just there.

python -m tests.chaos.exports MOMENT FOLDER: the file FOLDER/reached says that the moment has come, FOLDER/go on lets it go on.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

from rowlock import Rowlock, crashes

app = Rowlock()
MOMENT, FOLDER = sys.argv[1], Path(sys.argv[2])
CHUNK = 1024 * 1024
LARGE = 12  # of these: too large for one request


def reach(moment):
    if moment == MOMENT and not (FOLDER / "reached").exists():
        (FOLDER / "reached").touch()
        while not (FOLDER / "go on").exists():
            time.sleep(0.01)


@app.exporter("index_levels", concurrency=1)
def index_levels(fields):
    """No two attempts make the same file, so that a file shows whose it is."""
    own = f"{fields.indexKey} by {os.getpid()}\n".encode()
    yield own
    if fields.indexKey.startswith("LARGE"):
        for number in range(LARGE):
            yield own * (CHUNK // len(own))
            if number == LARGE // 2:
                reach("in the middle of an upload")


if __name__ == "__main__":
    logging.basicConfig(level="WARNING")
    crashes.listen(reach)
    app.worker().run()
