"""Suspects: records whose worker died under them. Which of them did it?

They are announced in the ledger as they start, so that a death blames only those that ran. One whose next death
would be its last runs alone among them: then there is no doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlock.ledger.ledger import Ledger
    from rowlock.queue.lane import Lane
    from rowlock.queue.record import Record


class Suspects:
    """The suspects that run in one worker now."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._running: set[Record] = set()
        self._alone = False

    def finished(self, record: Record) -> None:
        if record in self._running:
            self._running.discard(record)
            self._alone = False

    def clear(self) -> None:
        self._running.clear()
        self._alone = False

    def start(self, lanes: Iterable[Lane]) -> None:
        """Announces and starts as many of those that wait as may run."""
        for lane in lanes:
            chosen = self._choose(lane)
            if not chosen:
                continue
            try:
                started = self._ledger.start([(record.id, record.token) for record in chosen])
            except LedgerError:
                lane.suspects.extendleft(reversed(chosen))
                self._alone = False
                raise
            for record in chosen:
                if record.id in started:
                    self._running.add(record)
                    lane.executor.submit([[record]])
                else:  # its token is stale: it is not ours any more
                    lane.drop(record)
                    self._alone = False

    def _choose(self, lane: Lane) -> list[Record]:
        chosen: list[Record] = []
        running = sum(1 for record in self._running if record.flow == lane.flow.name)
        while lane.suspects and not self._alone and running + len(chosen) < lane.executor.slots:
            record = lane.suspects[0]
            if not lane.holds(record):
                lane.suspects.popleft()
                continue
            if record.deaths + 1 >= lane.flow.max_deaths:
                if chosen or self._running:
                    break
                self._alone = True
            chosen.append(lane.suspects.popleft())
        return chosen
