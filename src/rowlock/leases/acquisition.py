"""An acquisition: one wish for a lease, step by step. Whoever drives it does the waiting, in a thread or on a loop."""

from __future__ import annotations

import logging
import math
import secrets
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.errors import LedgerError, LedgerUnavailable, LockHeld
from rowlock.leases.lease import Lease
from rowlock.ledger.lock_table import NO_TICKET, Wanted

if TYPE_CHECKING:
    from rowlock.leases.keeper import Keeper
    from rowlock.ledger.ledger import Ledger, Row

logger = logging.getLogger("rowlock.leases")

_SHORTEST_PAUSE = 0.005
_LEDGER_PAUSE = 0.5


class Acquisition:
    """Tries, stands in line, and tries when its turn comes."""

    def __init__(
        self,
        keeper: Keeper,
        name: str,
        *,
        slots: int = 1,
        ttl: float,
        wait: float | None,
        note: str | None = None,
        owner: object,
        writes: Ledger,
    ) -> None:
        self.name = name
        self.ticket: int | None = None
        self.lease: Lease | None = None
        self._keeper = keeper
        self._wanted = Wanted(name, slots, keeper.holder, secrets.randbits(62), ttl, note)
        self._wait = wait
        self._owner = owner
        self._writes = writes
        self._give_up = math.inf if wait is None else clock.monotonic() + wait
        poll = writes.settings.poll_seconds
        self._poll = poll
        self._patience = max(3.0, 3 * poll)  # so long silent, a waiter has lost its place
        self._place_until = 0.0

    def step(self) -> Lease | float:
        """The lease, or for how long to wait before the next step; LockHeld when the wait is over."""
        try:
            with self._keeper.asking():
                self._keeper.refuse_if_closed()
                return self._step()
        except LedgerUnavailable as error:
            # Whoever is in line goes on waiting: that is what it is there for.
            if self.ticket is None or clock.monotonic() + _LEDGER_PAUSE > self._give_up:
                raise
            logger.warning("waiting for %r goes on without the ledger: %s", self.name, error)
            return _LEDGER_PAUSE

    def leave(self) -> None:
        """Leaves the line, and gives back what nobody waits for any more. What cannot be given up now is lost by itself."""
        if self.lease is not None:
            self.lease.__exit__(RuntimeError)
        if self.ticket is None:
            return
        try:
            with self._keeper.asking():
                if not self._keeper.closed:
                    self._keeper.ledger.locks.leave(self.ticket)
        except LedgerError as error:
            logger.debug("the place in the line for %r runs out by itself: %s", self.name, error)

    def _step(self) -> Lease | float:
        locks = self._keeper.ledger.locks
        ticket = NO_TICKET if self.ticket is None else self.ticket
        if self.ticket is not None:
            self._keep_place()
        # As who we are now: this process may have become another instance while it waited.
        wanted = self._wanted._replace(holder=self._keeper.holder)
        self.lease = self._keeper.take(wanted, ticket=ticket, owner=self._owner, writes=self._writes)
        if self.lease is not None:
            return self.lease
        slots = locks.look(self.name, self._wanted.slots, ticket)
        if len(slots) < self._wanted.slots:  # nobody has ever taken it
            locks.create(self.name, self._wanted.slots)
            return 0.0
        if clock.monotonic() >= self._give_up:
            raise LockHeld(self._explain(slots))
        if self.ticket is None:
            self._queue()
            return 0.0  # it may have been released while we were about to queue
        return self._pause(slots)

    def _queue(self) -> None:
        sent = clock.monotonic()
        self.ticket = self._keeper.ledger.locks.queue(self.name, self._keeper.holder, self._patience)
        self._place_until = sent + self._patience

    def _keep_place(self) -> None:
        sent = clock.monotonic()
        if sent < self._place_until - 2 * self._patience / 3:
            return
        if self._keeper.ledger.run_safely("lock_wait", ticket=self.ticket, patience=self._patience):
            self._place_until = sent + self._patience
        else:
            logger.warning("lost the place in the line for %r, after too long a silence", self.name)
            self._queue()

    def _pause(self, slots: list[Row]) -> float:
        pause = min(self._poll, self._give_up - clock.monotonic())
        if not slots[0].ahead:  # we are next: look just when the first of them runs out
            pause = min([pause, *(slot.seconds_left for slot in slots if slot.holder is not None)])
        return max(_SHORTEST_PAUSE, pause)

    def _explain(self, slots: list[Row]) -> str:
        waited = f"; waited {self._wait:g} s" if self._wait else ""
        held = [slot for slot in slots if slot.holder is not None and slot.seconds_left > 0]
        if not held:
            return f"{self.name!r} is free, but {slots[0].ahead} others wait for it{waited}."
        first = held[0]
        note = f" ({first.note})" if first.note else ""
        more = f" and {len(held) - 1} more" if len(held) > 1 else ""
        return (
            f"{self.name!r} is held by instance {first.holder} ({first.holder_name or 'unknown'}){note}{more} for "
            f"{clock.in_words(first.held_for)}; its lease runs {clock.in_words(first.seconds_left)} more unless it is "
            f"renewed{waited}. To see more: rowlock locks show {self.name}"
        )


def try_to_take(wish: Acquisition) -> Lease | None:
    """Without any waiting: the lease if it is free now."""
    try:
        while not isinstance(found := wish.step(), Lease):
            pass  # its rows had to be made first
    except LockHeld as error:
        logger.debug("%s", error)
        return None
    return found
