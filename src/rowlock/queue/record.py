"""A record: one unit of work, in the hands of the instance that claimed it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlock import clock
from rowlock.errors import LeaseLost, LedgerError, Refused
from rowlock.queue.failure import ErrorReport
from rowlock.queue.outcome import Outcome
from rowlock.queue.payload import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rowlock.ledger.ledger import Ledger
    from rowlock.ledger.rows import Held
    from rowlock.queue.transaction import RecordTransaction

_UNREAD = object()


@dataclass(frozen=True, slots=True)
class Holder:
    """What a record needs of whoever holds it."""

    ledger: Ledger
    instance_id: int
    seconds_left: Callable[[], float]
    settle: Callable[[Outcome], None]
    timeout: float | None = None


class Record:
    """One unit of work. Its token says which holding this is; a stale one is refused everywhere."""

    __slots__ = (
        "_created_at", "_holder", "_payload", "_payload_text", "_started", "_state",
        "attempt", "deaths", "flow", "id", "key", "priority", "token",
    )  # fmt: skip

    def __init__(self, held: Held, holder: Holder) -> None:
        (
            self.id, self.token, self.flow, self.key, self._payload_text, self.attempt, self.deaths,
            self.priority, self._created_at,
        ) = held  # fmt: skip
        self._holder = holder
        self._payload: Any = _UNREAD
        self._started: float | None = None
        self._state = "open"  # → handed_in → settled, or → lost

    def __repr__(self) -> str:
        return f"<Record {self.id} {self.flow}/{self.key} token={self.token} attempt={self.attempt}>"

    # -- what it is ----------------------------------------------------------------------------------

    @property
    def payload(self) -> Any:
        """What was enqueued; never overwritten."""
        if self._payload is _UNREAD:
            self._payload = decode(self._payload_text)
        return self._payload

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this record: send it along with calls to the outside world."""
        return f"{self.flow}:{self.key}"

    @property
    def enqueued_at(self) -> datetime:
        moment = clock.as_datetime(self._created_at)
        assert moment is not None  # noqa: S101 - created_at is never null
        return moment

    @property
    def instance_id(self) -> int:
        """The instance that holds it."""
        return self._holder.instance_id

    # -- is it still ours? ----------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        """How long the handler may still go on: until its timeout, or the end of the lease if that is lost."""
        left = 0.0 if self._state == "lost" else self._holder.seconds_left()
        if self._holder.timeout is not None and self._started is not None:
            left = min(left, self._started + self._holder.timeout - clock.monotonic())
        return max(0.0, left)

    @property
    def lost(self) -> bool:
        """True when somebody else may act on this record now. Long handlers look at it now and then."""
        return self._state == "lost" or self._holder.seconds_left() <= 0

    def check(self) -> None:
        """Raises LeaseLost when this holding has ended; costs nothing, asks only the local clock."""
        if self.lost:
            raise LeaseLost(
                f"{self!r}: the lease has ended; another worker may have it. Stop, and write nothing."
            )

    def heartbeat(self, progress: float | None = None) -> None:
        """Asks the ledger whether this holding still counts, and notes the progress (0 … 1)."""
        self.check()
        if not self._holder.ledger.run_safely("progress", id=self.id, token=self.token, progress=progress):
            self._state = "lost"
            raise LeaseLost(f"{self!r}: the token is stale; the record was taken over, settled or cancelled.")

    async def aheartbeat(self, progress: float | None = None) -> None:
        await asyncio.to_thread(self.heartbeat, progress)

    def transaction(self) -> RecordTransaction:
        """`with record.transaction() as tx:` — effects and completion in one commit, or neither."""
        from rowlock.queue.transaction import RecordTransaction  # noqa: PLC0415 - it imports this module

        return RecordTransaction(self)

    # -- settling by hand, for batches -----------------------------------------------------------------

    @property
    def settled(self) -> bool:
        return self._state in ("handed_in", "settled")

    def complete(self, result: Any = None) -> None:
        """Completes this record now, before its batch is done."""
        text = encode(result, self._holder.ledger.settings.max_payload_bytes, "The result")
        self._hand_in(Outcome(self, "completed", result=text))

    def fail(self, error: BaseException | str) -> None:
        """This attempt failed: it is tried again, or dead if it was the last."""
        report = (
            ErrorReport.of(error) if isinstance(error, BaseException) else ErrorReport.plain("Failed", error)
        )
        self._hand_in(Outcome(self, "failed", error=report))

    def reject(self, reason: str) -> None:
        """This record can never succeed: it is dead now."""
        self._hand_in(Outcome(self, "rejected", error=ErrorReport.plain("Reject", reason)))

    def retry_later(self, seconds: float, reason: str = "") -> None:
        """Again after so many seconds; the attempt is not spent."""
        self._hand_in(Outcome(self, "postponed", delay=seconds, reason=reason or None))

    def _hand_in(self, outcome: Outcome) -> None:
        if self._state != "open":
            raise Refused(f"{self!r} is already {self._state.replace('_', ' ')}.")
        self._state = "handed_in"
        try:
            self._holder.settle(outcome)
        except LedgerError:
            self._state = "open"  # it may be tried again: the token keeps it from counting twice
            raise
