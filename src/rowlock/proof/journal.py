"""The journal: every fault, with the ledger's time and what its victim held at that moment."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlock.clock import monotonic

if TYPE_CHECKING:
    from pathlib import Path

    from rowlock.proof.lookout import Holding


@dataclass
class Fault:
    """One strike."""

    kind: str
    detail: str
    at: float  # the ledger's clock
    second: float  # of the run
    pid: int | None = None
    route: str | None = None
    holdings: list[Holding] = field(default_factory=list)
    has_lock: bool = False
    lasted: float | None = None

    @property
    def started(self) -> int:
        """Handlers that were at work on what the victim held."""
        return sum(holding.started for holding in self.holdings)


@dataclass(frozen=True)
class Moment:
    """How far the work had come."""

    second: float
    settled: int
    live: int


class Journal:
    """Kept in memory for the report, and in a file for whoever wants to read along."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._begun = monotonic()
        self.faults: list[Fault] = []
        self.moments: list[Moment] = []

    @property
    def second(self) -> float:
        return monotonic() - self._begun

    def fault(self, fault: Fault) -> Fault:
        with self._lock:
            self.faults.append(fault)
            self._write(
                {
                    "fault": fault.kind, "detail": fault.detail, "second": round(fault.second, 3), "at": fault.at,
                    "pid": fault.pid, "route": fault.route, "held": len(fault.holdings), "started": fault.started,
                    "lock": fault.has_lock,
                }
            )  # fmt: skip
        return fault

    def moment(self, settled: int, live: int) -> None:
        with self._lock:
            self.moments.append(Moment(self.second, settled, live))

    def say(self, text: str) -> None:
        with self._lock:
            self._write({"second": round(self.second, 3), "said": text})

    def count(self, kind: str, detail: str | None = None) -> int:
        with self._lock:
            return sum(1 for f in self.faults if f.kind == kind and (detail is None or f.detail == detail))

    @property
    def kills_mid_flight(self) -> int:
        with self._lock:
            return sum(1 for fault in self.faults if fault.kind == "kill" and fault.started)

    def close(self) -> None:
        self._file.close()

    def _write(self, entry: dict[str, object]) -> None:
        print(json.dumps(entry), file=self._file, flush=True)
