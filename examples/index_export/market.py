"""The market database of the example: `python market.py --indices 500` makes market.db from levels.csv.

Each made-up index IDX0001, IDX0002, … follows one of the eight in the file, on a scale of its own.
"""

import argparse
import csv
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

TABLES = """
CREATE TABLE levels (index_key text, day integer, level real, PRIMARY KEY (index_key, day));
CREATE TABLE corrections (index_key text PRIMARY KEY);
"""


class Market:
    """What the people who look after the data do to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._series: dict[str, list[tuple[int, float]]] = {}
        with Path(__file__).with_name("levels.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                self._series.setdefault(row["index_key"], []).append((int(row["day"]), float(row["level"])))

    def create(self) -> None:
        """A new database with the eight indices of the file. In WAL mode, readers need not wait for a writer."""
        with closing(sqlite3.connect(self._path)) as market:
            market.execute("PRAGMA journal_mode = WAL")
            market.executescript(TABLES)
        with self._writing() as market:
            rows = ((key, *point) for key, points in self._series.items() for point in points)
            market.executemany("INSERT INTO levels VALUES (?, ?, ?)", rows)

    def load(self, index_keys: Iterable[str]) -> None:
        """Levels for these indices, always the same ones."""
        with self._writing() as market:
            for key in index_keys:
                market.executemany("INSERT INTO levels VALUES (?, ?, ?)", self._levels(key))

    def begin_corrections(self, index_keys: Iterable[str]) -> None:
        with self._writing() as market:
            market.executemany("INSERT INTO corrections VALUES (?)", [(key,) for key in index_keys])

    def end_corrections(self) -> None:
        with self._writing() as market:
            market.execute("DELETE FROM corrections")

    def _levels(self, key: str) -> Iterator[tuple[str, int, float]]:
        number = sum(key.encode())
        series = list(self._series.values())[number % len(self._series)]
        return ((key, day, round(level * (1 + number / 1000), 2)) for day, level in series)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=30)) as market, market:
            yield market


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--indices", type=int, default=500, metavar="N", help="so many made-up indices")
    count = parser.parse_args().indices
    market = Market(Path("market.db"))
    market.create()
    market.load(f"IDX{number:04d}" for number in range(1, count + 1))
    print(f"market.db has {count + 8} indices")


if __name__ == "__main__":
    main()
