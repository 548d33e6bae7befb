"""Clocks. Deadlines in this process are monotonic; deadlines in the ledger are the ledger's."""

from __future__ import annotations

import time
from datetime import UTC, datetime

# CLOCK_BOOTTIME goes on while a laptop or a virtual machine sleeps; a lease must too.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_ahead = 0.0


def monotonic() -> float:
    """Seconds that never jump, and that count the time the machine was suspended."""
    return time.clock_gettime(_CLOCK)


def wall() -> float:
    """The machine's idea of the time; only a SQLite ledger, which lives on one machine, may use it."""
    return time.time() + _ahead


def move_wall(seconds: float | None) -> None:
    """For tests: `wall` runs ahead by so much more, in this process and those it forks; None brings it back."""
    global _ahead  # noqa: PLW0603 - there is one clock on the wall
    _ahead = 0.0 if seconds is None else _ahead + seconds


def as_datetime(value: float | datetime | None) -> datetime | None:
    """A ledger's timestamp as an aware datetime: SQLite keeps seconds, the others timestamps."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromtimestamp(value, UTC)


def in_words(seconds: float) -> str:
    """A length of time as a person says it: 0.4 s, 12 s, 5 min, 3 h, 2 days."""
    if seconds < 1:
        return f"{max(0.0, seconds):.1f} s"
    for limit, size, unit in ((100, 1, "s"), (100 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:,.0f} days"
