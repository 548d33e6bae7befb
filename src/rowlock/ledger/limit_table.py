"""The table of limits: what each allows, and how far ahead it is reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger, Row

PREFIX = "limit:"  # of the lease whose slots are the limit's concurrency


class Declared(NamedTuple):
    """What a limit allows. `interval` is the time between two starts; None for a limit without a rate."""

    rate: str | None
    interval: float | None
    burst: int
    concurrency: int | None


class LimitTable:
    """One row for each limit in the fleet."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find(self, name: str) -> Declared | None:
        rows = self._ledger.run_safely("limit_find", name=name)
        return Declared(*rows[0][1:5]) if rows else None

    def declare(self, name: str, declared: Declared, instance: int) -> None:
        """The last declaration counts."""
        self._ledger.run_safely("limit_declare", name=name, instance=instance, **declared._asdict())

    def reserve(self, name: str, count: int, longest: float) -> Row | None:
        """The next free moments within so many seconds: (got, wait for the first, interval, rate).

        None when there is no such limit, or none with a rate.
        """
        params = {"name": name, "count": count, "longest": longest}
        if self._ledger.dialect != "sqlite":
            rows = self._ledger.run_safely("limit_reserve", **params)
            return rows[0] if rows else None
        # A transaction waits for the write lock in shorter steps than a single statement does.
        with self._ledger.transaction() as transaction:
            return transaction.one("limit_reserve", params)

    def list(self, name: str | None = None) -> list[Row]:
        """Every limit with its use, or one."""
        return self._ledger.run_safely("limits", name=name)
