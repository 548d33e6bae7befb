"""The tables of breakers: how a flow's attempts ended of late, and which flows are paused because of it.

A person's word about a flow is never overruled: every change here asks that the pause is the breaker's own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlock.ledger.ledger import Ledger, Row

# A window is counted in so many pieces.
_PIECES = 20


class Count(NamedTuple):
    """Attempts that ended alike; completed ones have no fingerprint."""

    fingerprint: str
    example: str | None
    attempts: int


class BreakerTable:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(self, flow: str, window: float, counts: Sequence[Count]) -> None:
        text = json.dumps([count._asdict() for count in counts])
        params = {"flow": flow, "window": window, "width": window / _PIECES, "counts": text}
        with self._ledger.transaction() as transaction:
            transaction.all("outcomes_prune", params)
            transaction.all("outcomes_add", params)

    def look(self, flow: str, window: float) -> Row | None:
        """The flow as its breaker sees it; None when the flow is not known."""
        rows = self._ledger.run_safely("breaker_look", flow=flow, window=window)
        return rows[0] if rows else None

    def trip(self, flow: str, pause: float, reason: str) -> bool:
        """Pauses an active flow; False if it is not (any more)."""
        params = {"flow": flow, "pause": pause, "reason": reason}
        with self._ledger.transaction() as transaction:
            if not transaction.all("breaker_pause", params):
                return False
            transaction.all("breaker_open", params)
            transaction.all("outcomes_forget", params)
        return True

    def probe(self, flow: str, instance: int) -> bool:
        """Makes an instance the only one that may claim; False if it is not its turn."""
        params = {"flow": flow, "instance": instance}
        with self._ledger.transaction() as transaction:
            if not transaction.all("breaker_probe", params):
                return False
            transaction.all("breaker_probing", params)
        return True

    def longer(self, flow: str, instance: int, longest: float, reason: str) -> Row | None:
        """The probe failed: (the new pause, how many there were); None if it was not this instance's to say."""
        params = {"flow": flow, "instance": instance, "longest": longest, "reason": reason}
        with self._ledger.transaction() as transaction:
            row = transaction.one("breaker_longer", params)
            if row is not None:
                transaction.all("breaker_reason", params)
        return row

    def resume(self, flow: str, instance: int | None) -> bool:
        """The flow goes on; False if its pause is not this instance's to end. None speaks for code without a breaker."""
        params = {"flow": flow, "instance": instance}
        with self._ledger.transaction() as transaction:
            if not transaction.all("breaker_resume", params):
                return False
            transaction.all("breaker_forget", params)
            transaction.all("outcomes_forget", params)
        self._ledger.wake(flow)
        return True
