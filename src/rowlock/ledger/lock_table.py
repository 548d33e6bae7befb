"""The tables of named leases: who holds what, who waits for it, who held it before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlock.ledger.ledger import Ledger, Row

# Whoever has not queued comes after everybody who has.
NO_TICKET = 2**62


class Wanted(NamedTuple):
    """A wish for one slot of a named lease. `request` is its own number, whatever is sent again."""

    name: str
    slots: int
    holder: int
    request: int
    ttl: float
    note: str | None


class HeldSlot(NamedTuple):
    """One holding: the token says which."""

    name: str
    slot: int
    token: int


class LockTable(ABC):
    """What is one statement on PostgreSQL and several steps elsewhere; the rest goes through `ledger.run`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.channel = f"rowlock_locks_{ledger.settings.ledger_schema}"

    @abstractmethod
    def create(self, name: str, slots: int) -> None:
        """Makes the rows of a lease that nobody has ever taken."""

    @abstractmethod
    def take(self, wanted: Wanted, ticket: int = NO_TICKET) -> HeldSlot | None:
        """Takes a slot that is free, unless somebody came before; safe to repeat with the same request."""

    @abstractmethod
    def release(self, held: HeldSlot) -> str | None:
        """Gives a slot back: `released`, `expired` when its time was up before, None when the token is stale."""

    @abstractmethod
    def force(self, name: str, slot: int, detail: str, token: int | None = None) -> Row | None:
        """Takes a slot away from its holder: its (token, holder), or None when nobody holds it (under that token)."""

    @abstractmethod
    def renew(self, holder: int, held: Sequence[HeldSlot]) -> set[tuple[str, int]]:
        """Renews all of them; the (name, slot) that are still ours."""

    @abstractmethod
    def queue(self, name: str, holder: int, patience: float) -> int:
        """Stands in line; the ticket."""

    def leave(self, ticket: int) -> None:
        """Leaves the line."""
        self._ledger.run_safely("lock_leave", ticket=ticket, channel=self.channel)

    def look(self, name: str, slots: int = 1, ticket: int = NO_TICKET) -> list[Row]:
        """The slots as they are now; none when nobody has ever taken this lease."""
        return self._ledger.run_safely("lock_look", name=name, slots=slots, ticket=ticket)
