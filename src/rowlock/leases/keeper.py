"""The keeper: the leases of one instance, renewed together in one statement, and ended on time."""

from __future__ import annotations

import logging
import math
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.errors import LeaseLost, LedgerError, Refused
from rowlock.leases.lease import Lease
from rowlock.ledger.ledger import Ledger
from rowlock.ledger.lock_table import NO_TICKET, HeldSlot, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlock.leases.tally import Tally

logger = logging.getLogger("rowlock.leases")

# Two renewals may fail before anything is lost.
_RENEWALS_A_TTL = 3
_CONNECTIONS = 4
_LONGEST_WAIT = 1.0  # a wait does not count the time a machine slept; the deadline does


class Keeper:
    """Renewals go over the heartbeat's own connection, everything else over others."""

    def __init__(
        self, heartbeat: Ledger, holder: Callable[[], int], wake: Callable[[], None], tally: Tally
    ) -> None:
        self._heartbeat = heartbeat
        self._holder = holder
        self._wake = wake
        self.tally = tally
        self._leases: dict[HeldSlot, Lease] = {}
        self._renew_at: dict[HeldSlot, float] = {}
        # Until when the heartbeat and the deadlines' thread mean to sleep: nobody is woken who would wake in time.
        self._heartbeat_sleeps = self._deadlines_sleep = math.inf
        self._changed = threading.Condition()
        self._deadlines: threading.Thread | None = None
        self.closed = False
        self._asking = 0
        self._quiet = threading.Condition()
        # For taking, waiting and giving back; never lent to anybody's handlers, which may use up their own.
        few = heartbeat.settings.model_copy(update={"pool_size": _CONNECTIONS})
        self.ledger = Ledger.open(few, control=True)

    @property
    def holder(self) -> int:
        return self._holder()

    @property
    def leases(self) -> list[Lease]:
        with self._changed:
            return list(self._leases.values())

    # -- taking and giving back ----------------------------------------------------------------------------

    def take(self, wanted: Wanted, *, ticket: int = NO_TICKET, owner: object, writes: Ledger) -> Lease | None:
        """One try."""
        self.refuse_if_closed()
        sent = clock.monotonic()
        held = self.ledger.locks.take(wanted, ticket)
        if held is not None and clock.monotonic() > sent + wanted.ttl / _RENEWALS_A_TTL:
            # So late a reply leaves little of the lease. The same request finds it ours, and its time begins anew.
            sent = clock.monotonic()
            held = self.ledger.locks.take(wanted, ticket)
        if held is None:
            return None
        lease = Lease(self, held, ttl=wanted.ttl, sent=sent, owner=owner, writes=writes)
        self._keep(lease, sent + lease.ttl / _RENEWALS_A_TTL)
        return lease

    def _keep(self, lease: Lease, renew_at: float) -> None:
        with self._changed:
            self._leases[lease.held_slot] = lease
            self._renew_at[lease.held_slot] = renew_at
            if self._deadlines is None and not self.closed:
                self._deadlines = threading.Thread(target=self._watch, name="rowlock-deadlines", daemon=True)
                self._deadlines.start()
            if lease.deadline < self._deadlines_sleep:
                self._changed.notify()
            sooner = renew_at < self._heartbeat_sleeps
            self._heartbeat_sleeps = min(renew_at, self._heartbeat_sleeps)
        if sooner:
            self._wake()
        if self.closed:  # meanwhile, and nobody will keep it
            lease.release()
            self.refuse_if_closed()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While somebody asks the ledger, its connections are not closed behind his back."""
        with self._quiet:
            self._asking += 1
        try:
            yield
        finally:
            with self._quiet:
                self._asking -= 1
                if self.closed:
                    self._quiet.notify_all()

    def refuse_if_closed(self) -> None:
        if self.closed:
            raise Refused("The app is closed: it takes no leases any more.")

    def release(self, held: HeldSlot) -> str | None:
        with self.asking():
            return self.ledger.locks.release(held)

    def drop(self, lease: Lease) -> None:
        with self._changed:
            self._leases.pop(lease.held_slot, None)
            self._renew_at.pop(lease.held_slot, None)

    def refuse_nesting(self, name: str, owner: object) -> None:
        """Whoever holds a lease and waits for the same one waits for itself."""
        if any(lease.name == name and lease.owner is owner for lease in self.leases):
            raise Refused(
                f"This task already holds {name!r}: taking it again inside would wait for itself. Pass the lease on "
                "instead of taking it twice."
            )

    def close(self) -> None:
        """Gives everything back, and ends."""
        with self._changed:
            self.closed = True  # whoever takes one from now on gives it back
        try:
            for lease in self.leases:
                self._give_back(lease)
        except LedgerError as error:
            for lease in self.leases:
                lease.lose("this instance has ended")
            logger.warning("what is still held will run out by itself: %s", error)
        with self._changed:
            self._changed.notify()
        if self._deadlines is not None:
            self._deadlines.join()
        with self._quiet:
            self._quiet.wait_for(lambda: not self._asking, self._heartbeat.settings.heartbeat_seconds)
        self.ledger.close()

    @staticmethod
    def _give_back(lease: Lease) -> None:
        try:
            lease.release()
        except LeaseLost as error:
            logger.warning("%s", error)

    # -- the heartbeat's part --------------------------------------------------------------------------------

    def next_renewal(self) -> float:
        """When the next one is due, on the monotonic clock."""
        with self._changed:
            self._heartbeat_sleeps = min(self._renew_at.values(), default=math.inf)
            return self._heartbeat_sleeps

    def renew(self) -> None:
        """Renews everything that is due, and what will be soon: one statement, however many there are."""
        now = clock.monotonic()
        if self.next_renewal() > now:
            return
        with self._changed:
            due = [
                lease
                for held, lease in self._leases.items()
                if self._renew_at[held] <= now + lease.ttl / (2 * _RENEWALS_A_TTL)
            ]
        if not due:  # given back just now
            return
        sent = clock.monotonic()
        try:
            ours = self._heartbeat.locks.renew(self.holder, [lease.held_slot for lease in due])
        except LedgerError as error:
            self.tally.add("lease_renewals", "failed", len(due))
            shortest = min(due, key=lambda lease: lease.seconds_left)
            logger.warning(
                "%d leases could not be renewed, %r has %.1f s left: %s",
                len(due), shortest.name, shortest.seconds_left, error,
            )  # fmt: skip
            self._later(due)
            return
        for lease in due:
            if (lease.name, lease.held_slot.slot) in ours:
                self.tally.add("lease_renewals", "renewed")
                self._renewed(lease, sent)
            else:
                self._not_renewed(lease)

    def _renewed(self, lease: Lease, sent: float) -> None:
        if lease.extend(sent):
            with self._changed:
                if lease.held_slot in self._renew_at:
                    self._renew_at[lease.held_slot] = sent + lease.ttl / _RENEWALS_A_TTL
            return
        lease.expire()
        if lease.lost.is_set():
            # Lost by the local clock while the renewal was under way: nobody acts on it, so nobody need wait for it.
            try:
                self._heartbeat.locks.release(lease.held_slot)
            except LedgerError as error:
                logger.warning("%r runs out by itself: %s", lease, error)

    def _not_renewed(self, lease: Lease) -> None:
        """Lost; or a fenced transaction has its row just now, and must not keep the others from being renewed."""
        try:
            lost = self._how_it_ended(lease)
        except LedgerError as error:
            lost = f"the ledger refused to renew it, and does not say why ({error})"
        if lost is None:
            self._later([lease])
        else:
            lease.lose(lost)

    def _later(self, due: list[Lease]) -> None:
        again = clock.monotonic()
        with self._changed:
            for lease in due:
                if lease.held_slot in self._renew_at:
                    self._renew_at[lease.held_slot] = again + lease.ttl / (4 * _RENEWALS_A_TTL)

    def _how_it_ended(self, lease: Lease) -> str | None:
        """None if it has not."""
        held = lease.held_slot
        rows = self._heartbeat.run_safely("lock_holding", **held._asdict())
        if rows:
            detail = f", {rows[0].detail}" if rows[0].detail else ""
            return f"it was {rows[0].ended}{detail}"
        slots = self._heartbeat.locks.look(held.name, held.slot + 1)
        if any(row.slot == held.slot and row.token == held.token and row.seconds_left > 0 for row in slots):
            return None
        return "its time was up before it was renewed"

    # -- the deadlines ----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Ends each lease at its local deadline, even while the ledger does not answer."""
        while True:
            with self._changed:
                if self.closed:
                    return
                now = clock.monotonic()
                late = [lease for lease in self._leases.values() if lease.deadline <= now]
                if not late:
                    soonest = min((lease.deadline for lease in self._leases.values()), default=math.inf)
                    self._deadlines_sleep = min(now + _LONGEST_WAIT, soonest)
                    self._changed.wait(self._deadlines_sleep - now)
                    continue
            for lease in late:
                lease.expire()
