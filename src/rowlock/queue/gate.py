"""The gate: where a record that is claimed waits for its flow's limit. It can be taken back from here at any time."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.errors import LeaseLost, LedgerError
from rowlock.leases.limit import Halt, Permit

if TYPE_CHECKING:
    from rowlock.leases.limit import Limit
    from rowlock.queue.record import Record

logger = logging.getLogger("rowlock.worker")

_LEDGER_PAUSE = 0.5
LEAVING_SECONDS = 5.0
# After a longer wait the ledger is asked whether the record is still ours: it may have been cancelled meanwhile.
_LONG_SECONDS = 1.0


class Visitors:
    """How many are at a flow's gate; whoever ends the flow waits until they have given back what they took there."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """True when nobody is there any more."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, seconds)


class Gate:
    """One waiting of one turn. Either the slot starts, or somebody takes the turn away: never both."""

    __slots__ = ("_decided", "_halt")

    def __init__(self) -> None:
        self._decided = threading.Lock()
        self._halt = Halt()

    def decide(self) -> bool:
        """True for whoever comes first."""
        return self._decided.acquire(blocking=False)

    def close(self) -> bool:
        """Takes the turn away from the slot that waits; False if it has started."""
        if not self.decide():
            return False
        self._halt.set()
        return True

    def wait(self, limit: Limit) -> Permit | None:
        """Waits as long as it takes; None when it was closed."""
        while not self._halt.stopping.is_set():
            try:
                permit = limit.wait_for(self._halt)
            except LedgerError as error:
                _tell(limit, error)
                self._halt.bell.wait(_LEDGER_PAUSE)
                continue
            if permit is None or self.decide():
                return permit
            permit.end()
        return None


async def pass_gate(limit: Limit) -> Permit:
    """The same on an event loop, where a cancellation closes it."""
    while True:
        try:
            return await limit.await_for()
        except LedgerError as error:
            _tell(limit, error)
            await asyncio.sleep(_LEDGER_PAUSE)


def still_ours(work: list[Record], since: float) -> bool:
    """False when the lease was lost, or a record was taken away, while its turn waited."""
    if any(record.lost for record in work):
        return False
    if clock.monotonic() - since < _LONG_SECONDS:
        return True
    try:
        for record in work:
            record.heartbeat()
    except LeaseLost:
        return False
    except LedgerError as error:
        logger.warning("%r starts unasked: %s", work[0], error)
    return True


def _tell(limit: Limit, error: LedgerError) -> None:
    logger.warning("waiting for the limit %r goes on without the ledger: %s", limit.name, error)
