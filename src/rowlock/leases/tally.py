"""The tally: what an instance did, counted in memory, and added to the ledger's totals with its heartbeat.

The totals are those of the whole fleet, and never fall. A kill loses what was counted since the last heartbeat.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from rowlock.errors import LedgerError

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

# Seconds; what took longer is in the last one.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
LONGER = "inf"
SUM = "sum"
_PARTS = (*map(str, BUCKETS), LONGER)


class Counted(NamedTuple):
    """One total: of what, of which flow or kind, and of a histogram which part."""

    metric: str
    subject: str
    part: str


class Tally:
    """Counts; any thread may."""

    def __init__(self) -> None:
        self._counts: defaultdict[Counted, float] = defaultdict(float)
        self._lock = threading.Lock()

    def add(self, metric: str, subject: str, amount: float = 1) -> None:
        with self._lock:
            self._counts[Counted(metric, subject, "")] += amount

    def observe(self, metric: str, subject: str, seconds: float) -> None:
        part = _PARTS[bisect_left(BUCKETS, seconds)]
        with self._lock:
            self._counts[Counted(metric, subject, part)] += 1
            self._counts[Counted(metric, subject, SUM)] += seconds

    def write(self, ledger: Ledger) -> None:
        """Adds everything to the ledger's totals; what could not be added stays here."""
        with self._lock:
            counted, self._counts = self._counts, defaultdict(float)
        if not counted:
            return
        # In one order, so that two instances that write at the same moment do not wait for each other.
        rows = [{**which._asdict(), "value": counted[which]} for which in sorted(counted)]
        try:
            ledger.run("tally_add", counts=json.dumps(rows))
        except LedgerError:
            with self._lock:
                for which, amount in counted.items():
                    self._counts[which] += amount
            raise
