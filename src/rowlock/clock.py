"""Clocks. Deadlines in this process are monotonic; deadlines in the ledger are the ledger's."""

from __future__ import annotations

import time
from datetime import UTC, datetime

# CLOCK_BOOTTIME goes on while a laptop or a virtual machine sleeps; a lease must too.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def monotonic() -> float:
    """Seconds that never jump, and that count the time the machine was suspended."""
    return time.clock_gettime(_CLOCK)


def wall() -> float:
    """The machine's idea of the time; only a SQLite ledger, which lives on one machine, may use it."""
    return time.time()


def as_datetime(value: float | datetime | None) -> datetime | None:
    """A ledger's timestamp as an aware datetime: SQLite keeps seconds, the others timestamps."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromtimestamp(value, UTC)
