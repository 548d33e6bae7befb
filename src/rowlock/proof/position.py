"""How far the enqueueing may go, and how far it came: numbers that outlive whoever is killed."""

from __future__ import annotations

import os
from pathlib import Path


class Position:
    """A number in a file: the run says how far it may go, the enqueuer how far it came."""

    def __init__(self, folder: str | Path, name: str) -> None:
        self._path = Path(folder) / name

    def read(self) -> int:
        try:
            return int(self._path.read_text())
        except FileNotFoundError:
            return 0

    def write(self, number: int) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(str(number))
        os.replace(fresh, self._path)  # noqa: PTH105 - whoever is killed here leaves a whole number behind
