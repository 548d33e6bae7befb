"""A lease: the right to do one named thing until a deadline. Its token says which holding this is."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Literal, Self

from rowlock import clock, log
from rowlock.errors import LeaseLost, LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.keeper import Keeper
    from rowlock.leases.transaction import LeaseTransaction
    from rowlock.ledger.ledger import Ledger
    from rowlock.ledger.lock_table import HeldSlot

logger = logging.getLogger("rowlock.leases")

# Work stops this part of a lease before the ledger would give it away.
SAFETY_MARGIN = 0.1


class Lease:
    """Held from the moment it was taken until it is released or lost; never taken back after that.

    The instance's heartbeat renews it. `held` and `seconds_left` ask the local clock alone: the local deadline is
    counted from before the renewal was sent, and ends before the ledger's.
    """

    def __init__(
        self, keeper: Keeper, held: HeldSlot, *, ttl: float, sent: float, owner: object, writes: Ledger
    ) -> None:
        self.held_slot = held
        self.ttl = ttl
        self.owner = owner  # the task or thread that took it
        self.writes = writes  # where its fenced transactions go
        self.lost = threading.Event()
        self.why_lost: str | None = None
        self.committing = threading.Lock()  # one fenced commit at a time, so that each can be re-read
        self._keeper = keeper
        self._state: Literal["held", "released", "lost"] = "held"
        self._changing = threading.Lock()
        self._on_lost: list[Callable[[Lease], object]] = []
        self._deadline = self._deadline_of(sent)

    def __repr__(self) -> str:
        return f"<Lease {self.name} token={self.token} {self._state}>"

    @property
    def name(self) -> str:
        return self.held_slot.name

    @property
    def token(self) -> int:
        """Rises with every holding: give it to whatever you write to, so that it can refuse a smaller one."""
        return self.held_slot.token

    # -- is it still ours? -------------------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """By the local clock alone: False once the deadline passed, whatever the ledger would say."""
        return self._state == "held" and clock.monotonic() < self._deadline

    @property
    def seconds_left(self) -> float:
        """How long this process may still act, unless it is renewed meanwhile."""
        return max(0.0, self._deadline - clock.monotonic()) if self._state == "held" else 0.0

    def check(self) -> None:
        """Raises LeaseLost when this holding has ended; costs nothing, asks only the local clock."""
        if not self.held:
            raise LeaseLost(self._gone())

    def transaction(self) -> LeaseTransaction:
        """`with lease.transaction() as tx:` — what it writes is committed while the lease is held, or not at all."""
        from rowlock.leases.transaction import LeaseTransaction  # noqa: PLC0415 - it imports this module

        return LeaseTransaction(self)

    def fence(self, connection: Any) -> None:
        """Checks the token inside your own transaction; call it last, just before you commit.

        `connection` is your SQLAlchemy, psycopg or sqlite3 connection to the ledger's database, at READ COMMITTED.
        LeaseLost means: roll back. From here to your commit nobody can take the lease.
        """
        from rowlock.leases.transaction import fence  # noqa: PLC0415

        fence(self, self.writes.borrow(connection))

    # -- the end -----------------------------------------------------------------------------------------

    def release(self) -> None:
        """Gives it back: whoever waits may have it at once. LeaseLost if it had been lost before."""
        if self._end("released"):
            ended = self._keeper.release(self.held_slot)
            if ended != "released":
                self._state = "lost"
                self.why_lost = (
                    "its time was up before it was given back" if ended else "the ledger had taken it away"
                )
                self._tell()
        if self._state == "lost":
            raise LeaseLost(self._gone())

    def __enter__(self) -> Self:
        log.hold(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Gives it back. That it was lost on the way is an error, but does not hide another one."""
        log.let_go(self)
        try:
            self.release()
        except LedgerError as error:
            logger.warning("%r could not be given back, it will run out: %s", self, error)
        except LeaseLost:
            if kind is None:
                raise

    def on_lost(self, tell: Callable[[Lease], object]) -> None:
        """Calls this when the lease is lost (not when it is released); at once if it has been."""
        with self._changing:
            self._on_lost.append(tell)
            if not self.lost.is_set():
                return
        tell(self)

    # -- what its keeper does ------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """On the local monotonic clock."""
        return self._deadline

    def extend(self, sent: float) -> bool:
        """A renewal sent at that moment has succeeded; False if the lease had ended meanwhile.

        One that comes in after the local deadline is too late: somebody may have seen that the lease was over.
        """
        with self._changing:
            if not self.held:
                return False
            self._deadline = self._deadline_of(sent)
            return True

    def _deadline_of(self, sent: float) -> float:
        return sent + self.ttl * (1 - SAFETY_MARGIN)

    def lose(self, reason: str) -> None:
        """It is somebody else's to have now. Tells everybody, once."""
        if self._end("lost"):
            self.why_lost = reason
            self._keeper.tally.add("leases_lost", "taken")
            self._tell()

    def expire(self) -> None:
        """Loses it if the local deadline has passed, and no renewal came in at the last moment."""
        if self._end("lost", only_if_late=True):
            self.why_lost = "it could not be renewed in time"
            self._keeper.tally.add("leases_lost", "expired")
            self._tell()

    def _end(self, state: Literal["released", "lost"], *, only_if_late: bool = False) -> bool:
        with self._changing:
            if self._state != "held" or (only_if_late and clock.monotonic() < self._deadline):
                return False
            self._state = state
        self._keeper.drop(self)
        return True

    def _tell(self) -> None:
        logger.error("%s", self._gone())
        with self._changing:
            self.lost.set()
            told = list(self._on_lost)
        for tell in told:
            try:
                tell(self)
            except Exception:  # the thread that tells keeps other leases too
                logger.exception("%r: whoever was told of the loss failed", self)

    def _gone(self) -> str:
        if self._state == "released":
            return f"{self.name!r} (token {self.token}) has been given back; take it again to go on."
        why = self.why_lost or "it could not be renewed in time"
        return (
            f"{self.name!r} (token {self.token}) was lost: {why}. Another instance may hold it now. Stop, and write "
            "nothing that is not fenced."
        )
