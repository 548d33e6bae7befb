"""The ledger's clock, moved by hand: retries become due and leases run out, and nobody sleeps. For tests only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rowlock import clock

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger


class LedgerClock:
    """One ledger's clock. It only moves the ledger's own time: what a process measures for itself goes on as ever.

    On PostgreSQL it replaces the ledger's `ledger_time()`, for everybody who uses that ledger: never do this to a
    ledger that you keep. A SQLite ledger asks its process for the time, so this process's ledgers move together.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._in_process = ledger.dialect == "sqlite"
        if not self._in_process and not ledger.run("clock_known")[0].known:
            ledger.run("clock_table")
            ledger.run("clock_fake")

    def advance(self, seconds: float) -> None:
        """It is so many seconds later now."""
        if self._in_process:
            clock.move_wall(seconds)
        else:
            self._ledger.run("clock_move", seconds=seconds)

    def reset(self) -> None:
        """The real time again."""
        if self._in_process:
            clock.move_wall(None)
        else:
            self._ledger.run("clock_reset")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
