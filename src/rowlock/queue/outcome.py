"""How an attempt ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from rowlock.queue.failure import ErrorReport
    from rowlock.queue.record import Record

OutcomeKind = Literal[
    "completed",  # to be settled with its result
    "failed",  # the handler raised
    "timed_out",  # the handler took too long
    "died",  # its process died under it
    "rejected",  # the handler said: never
    "postponed",  # the handler said: later; the attempt is not spent
    "settled",  # already settled, inside record.transaction()
    "lost",  # the token was stale; nothing is left to do
]


class Outcome(NamedTuple):
    record: Record
    kind: OutcomeKind
    result: str | None = None
    error: ErrorReport | None = None
    delay: float = 0.0
    reason: str | None = None
