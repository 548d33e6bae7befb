"""A lane: one flow inside one worker, and how much of it to claim next.

Every flow has a lane of its own with its own slots, so that no flow starves another. A lane claims what its
slots can run, and a little ahead when its handlers are fast: a record that waits here cannot run elsewhere.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.ledger.rows import Wish
from rowlock.queue.flow_breaker import FlowBreaker

if TYPE_CHECKING:
    from rowlock.ledger.rows import Held
    from rowlock.queue.executor import Executor
    from rowlock.queue.flow import Flow
    from rowlock.queue.record import Record

# Claim ahead what the handlers finish in this time.
_AHEAD_SECONDS = 0.1
# A claim from the start may walk over rows that an old snapshot keeps alive. It is repeated so often that it
# takes a tenth of the time at most, and never more often than this.
_RESCAN_SHARE = 10
_RESCAN_SECONDS = 0.05
_FIRST = (-32768, 0)


def place(row: Held) -> tuple[int, int]:
    """Where a record stands in its flow: high priority first, then oldest."""
    return -row.priority, row.id


class Lane:
    def __init__(self, flow: Flow, executor: Executor, max_prefetch: int) -> None:
        self.flow = flow
        self.executor = executor
        self.in_hand: dict[int, Record] = {}
        self.suspects: deque[Record] = deque()
        self._slots = executor.slots * (flow.batch or 1)
        # What waits for a limit here could not start any sooner, and may be of use elsewhere.
        self._max_prefetch = 0 if flow.limit else max_prefetch
        self.breaker = FlowBreaker(flow.name, flow.breaker) if flow.breaker else None
        self._rate = 0.0
        self._counted_at = clock.monotonic()
        self._counted = 0
        self._full_claim = 0
        self._full_claim_at = 0.0
        self._position = _FIRST
        self._next_rescan = 0.0

    def room(self) -> int:
        """How many more records this lane can use now."""
        room = max(0, self._most() - len(self.in_hand))
        return room if self.breaker is None else self.breaker.room(room)

    def _most(self) -> int:
        return self._slots + min(self._max_prefetch, int(self._rate * _AHEAD_SECONDS))

    def wish(self, now: float) -> Wish | None:
        if not self.in_hand:
            self._learn(now)
        room = self.room()
        if room == 0:
            return None
        if now >= self._next_rescan:
            self._position = _FIRST
        return Wish(self.flow.name, room, *self._position)

    def _learn(self, now: float) -> None:
        """The handlers waited for the ledger: they are at least as fast as they finished the last claim."""
        if self._full_claim and now > self._full_claim_at:
            proven = self._full_claim / (now - self._full_claim_at)
            # One lucky claim is no promise, so the lane grows by doubling.
            self._rate = max(self._rate, min(proven, 2 * self._most() / _AHEAD_SECONDS))

    def claimed(self, held: list[Held], wish: Wish, sent: float, now: float) -> None:
        """Puts what was claimed in order, and notes where it ended, so that the next claim begins there."""
        held.sort(key=place)
        if self.breaker is not None:
            self.breaker.claimed(
                len(held), short=len(held) < wish.limit and (wish.rank, wish.after) == _FIRST
            )
        if (wish.rank, wish.after) == _FIRST:
            self._next_rescan = now + max(_RESCAN_SECONDS, (now - sent) * _RESCAN_SHARE)
        if len(held) < wish.limit:
            self._position = _FIRST
            self._full_claim = 0
        elif held:
            self._position = place(held[-1])
            self._full_claim, self._full_claim_at = len(held), now

    def finished(self, record: Record, now: float) -> bool:
        """The record has left this lane; False if this holding of it had left before."""
        if not self.drop(record):
            return False
        self._counted += 1
        elapsed = now - self._counted_at
        if elapsed >= _AHEAD_SECONDS:
            rate = self._counted / elapsed
            self._rate = rate if self._rate == 0 else 0.5 * self._rate + 0.5 * rate
            self._counted, self._counted_at = 0, now
        return True

    def holds(self, record: Record) -> bool:
        """By identity: the same record may be here again under a newer token."""
        return self.in_hand.get(record.id) is record

    def drop(self, record: Record) -> bool:
        if not self.holds(record):
            return False
        del self.in_hand[record.id]
        return True

    def dispatch(self, records: list[Record]) -> None:
        """Hands records to the executor, in batches if the flow wants them so."""
        size = self.flow.batch or 1
        self.executor.submit([records[at : at + size] for at in range(0, len(records), size)])
