"""Moments: when the next use within a rate may start, reserved in the ledger for all who ask at the same time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.errors import LimitReached

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

# Nobody reserves further ahead: that much of the budget, at most, is lost with an instance that dies.
AHEAD = 1.0
# A moment that was missed by more is given up for another one: a process that was stopped must not start at once all
# that it had reserved. Each miss doubles it, so that a machine that is always late still goes on. Where moments are far
# apart, a little more does no harm, and a miss would cost an hour or a day.
_LATE, _LATEST = 0.25, 10.0


class Asker:
    """One who waits for an answer of `Moments`."""

    __slots__ = ("answered", "got", "interval", "longest", "received", "sent", "wait")

    def __init__(self, longest: float) -> None:
        self.longest = longest
        self.answered = False
        self.got = False
        self.wait = 0.0
        self.interval = 0.0
        self.sent = self.received = 0.0


class Moments:
    """The rate of one limit, as one process asks for it: one statement at a time, for everybody who has come by then."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._line: list[Asker] = []
        self._changing = threading.Lock()
        self._turn = threading.Lock()

    def ask(self, ledger: Ledger, longest: float) -> Asker:
        """The next free moment if it is not further away; what it gives says how far the next one is."""
        asker = Asker(longest)
        with self._changing:
            self._line.append(asker)
        try:
            while not asker.answered:
                with self._turn:
                    if not asker.answered:
                        self._ask(ledger)
        finally:
            with self._changing:
                if asker in self._line:
                    self._line.remove(asker)
        return asker

    def _ask(self, ledger: Ledger) -> None:
        with self._changing:
            # Those in front who would wait for as long as the first one.
            longest = self._line[0].longest
            together = [asker for asker in self._line if asker.longest == longest]
        sent = clock.monotonic()
        row = ledger.limits.reserve(self.name, len(together), longest)
        received = clock.monotonic()
        with self._changing:
            for number, asker in enumerate(together):
                asker.sent, asker.received, asker.answered = sent, received, True
                if row is None:  # no rate any more: nothing to wait for
                    asker.got = True
                    continue
                asker.got, asker.interval = number < row.got, row.interval_seconds
                asker.wait = max(0.0, row.wait + min(number, row.got) * row.interval_seconds)
            self._line = [asker for asker in self._line if not asker.answered]


class Moment:
    """One wish for a moment, step by step: `pause`, then `ask` when it says 0, until it says None."""

    def __init__(self, moments: Moments, ledger: Ledger, give_up: float) -> None:
        self._moments = moments
        self._ledger = ledger
        self._give_up = give_up
        self._tolerance = _LATE
        self._reserved: Asker | None = None
        self._ask_at = 0.0
        self.due = 0.0  # when it came, on the local clock, or a little before

    def pause(self) -> float | None:
        """Seconds until the next step, 0 when it is to ask; None when the moment has come."""
        now = clock.monotonic()
        mine = self._reserved
        if mine is not None:
            # Counted from the reply, it cannot be too early by the ledger's clock; counted from the question, a late
            # start cannot hide.
            if now < mine.received + mine.wait:
                return mine.received + mine.wait - now
            self.due = mine.sent + mine.wait
            if now - self.due <= max(self._tolerance, min(_LATEST, mine.interval / 2)):
                return None
            self._tolerance *= 2
            self._reserved = None
        return max(0.0, self._ask_at - now)

    def ask(self) -> None:
        """Asks the ledger. LimitReached when no moment comes early enough; nothing is spent then."""
        left = max(0.0, self._give_up - clock.monotonic())
        answer = self._moments.ask(self._ledger, min(AHEAD, left))
        if answer.got:
            self._reserved = answer
        elif answer.wait > left:
            raise LimitReached(
                f"limit {self._moments.name!r}: the next free moment is {clock.in_words(answer.wait)} away, and this wait "
                f"ends in {clock.in_words(left)}. Nothing was spent. To see more: rowlock limits"
            )
        else:
            # Back when the line has grown shorter, not for every moment of it.
            self._ask_at = clock.monotonic() + max(0.001, answer.wait - AHEAD / 2)
