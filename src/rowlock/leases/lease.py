"""A named lease in the ledger: one holder at a time, a token that only rises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.leases.instance import SAFETY_MARGIN

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger


class Lease:
    """The right to do one named thing until a deadline."""

    def __init__(self, ledger: Ledger, name: str, ttl: float) -> None:
        self._ledger = ledger
        self.name = name
        self.ttl = ttl
        self.token: int | None = None
        self._deadline = 0.0

    @property
    def held(self) -> bool:
        """By the local clock alone: False once the deadline passed, whatever the ledger would say."""
        return self.token is not None and clock.monotonic() < self._deadline

    def take(self, holder: int) -> bool:
        """Takes the lease if it is free or expired, renews it if it is ours; False if somebody has it."""
        sent = clock.monotonic()
        rows = self._ledger.run_safely("lease_take", name=self.name, holder=holder, ttl=self.ttl)
        self.token = rows[0].token if rows else None
        self._deadline = sent + self.ttl * (1 - SAFETY_MARGIN)
        return bool(rows)

    def release(self, holder: int) -> None:
        if self.token is not None:
            self._ledger.run("lease_release", name=self.name, holder=holder, token=self.token)
            self.token = None
