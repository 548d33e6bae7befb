"""The tally: what an instance did, counted in memory, and added to the ledger's totals with its heartbeat.

The totals are those of the whole fleet, and never fall. A kill loses what was counted since the last heartbeat.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from functools import partial
from operator import add
from typing import TYPE_CHECKING

from rowlock.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlock.ledger.ledger import Ledger

# Seconds; what took longer is in the last one.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
LONGER = "inf"
SUM = "sum"
_PARTS = (*map(str, BUCKETS), LONGER, SUM)
_bucket = partial(bisect_left, BUCKETS)


class Tally:
    """Counts; any thread may."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[float]] = {}
        self._lock = threading.Lock()

    def add(self, metric: str, subject: str, amount: float = 1) -> None:
        with self._lock:
            self._of(metric, subject, 1)[0] += amount

    def observe(self, metric: str, subject: str, seconds: Sequence[float], weight: float = 1) -> None:
        """Times that were measured; each stands for so many."""
        if not seconds:
            return
        with self._lock:
            parts = self._of(metric, subject, len(_PARTS))
            for bucket in map(_bucket, seconds):
                parts[bucket] += weight
            parts[-1] += sum(seconds) * weight

    def _of(self, metric: str, subject: str, parts: int) -> list[float]:
        found = self._counts.get((metric, subject))
        if found is None:
            found = self._counts[metric, subject] = [0.0] * parts
        return found

    def write(self, ledger: Ledger) -> None:
        """Adds everything to the ledger's totals; what could not be added stays here."""
        with self._lock:
            counted, self._counts = self._counts, {}
        if not counted:
            return
        try:
            ledger.run("tally_add", counts=json.dumps(list(_rows(counted))))
        except LedgerError:
            with self._lock:
                for (metric, subject), amounts in counted.items():
                    parts = self._of(metric, subject, len(amounts))
                    parts[:] = map(add, parts, amounts)
            raise


def _rows(counted: dict[tuple[str, str], list[float]]) -> Iterator[dict[str, str | float]]:
    # In one order, so that two instances that write at the same moment do not wait for each other.
    for (metric, subject), amounts in sorted(counted.items()):
        names = _PARTS if len(amounts) > 1 else ("",)
        for part, amount in zip(names, amounts, strict=True):
            if amount:
                yield {"metric": metric, "subject": subject, "part": part, "value": amount}
