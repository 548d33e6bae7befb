"""One flow's breaker inside one worker: what it counted, and what it tries when it is the one that probes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.ledger.breaker_table import Count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlock.queue.breaker import Breaker
    from rowlock.queue.outcome import Outcome
    from rowlock.queue.record import Record

_GOOD = ("completed", "settled")
_BAD = ("failed", "timed_out", "died")


class Probe:
    """A few records that are tried while the flow is paused for everybody else."""

    def __init__(self, records: int) -> None:
        self.left = records
        self.ids: set[int] = set()
        self.good = self.bad = 0
        self.short = False  # the flow has no more that could be tried
        self.example: str | None = None

    def is_over(self, in_hand: Iterable[int]) -> bool:
        return bool(self.ids) and (self.left <= 0 or self.short) and self.ids.isdisjoint(in_hand)


class FlowBreaker:
    """Told by the pump, read by maintenance."""

    def __init__(self, flow: str, breaker: Breaker) -> None:
        self.flow = flow
        self.policy = breaker
        self.probe: Probe | None = None
        self.open = False  # as it was last seen
        self.hand_back = False  # what has not started goes back
        self.probe_wanted = False  # its pause is over
        self._counts: dict[str, Count] = {}
        self._changing = threading.Lock()

    # -- the pump's part -----------------------------------------------------------------------------------------

    def room(self, room: int) -> int:
        probe = self.probe
        return room if probe is None else min(room, max(0, probe.left))

    def claimed(self, count: int, *, short: bool) -> None:
        probe = self.probe
        if probe is not None:
            probe.left -= count
            probe.short = short

    def in_hand(self, records: list[Record]) -> None:
        """Told when they are in the lane's hand: a probe that has left it is over."""
        probe = self.probe
        if probe is not None:
            probe.ids.update(record.id for record in records)

    def note(self, outcome: Outcome) -> None:
        """Before the record leaves its lane, so that a probe is not over without its result."""
        if outcome.kind in _GOOD:
            self._count(Count("", None, 1))
        elif outcome.kind in _BAD and outcome.error is not None:
            self._count(Count(outcome.error.fingerprint, outcome.error.summary, 1))
        probe = self.probe
        if probe is not None and outcome.record.id in probe.ids:
            probe.good += outcome.kind in _GOOD
            if outcome.kind in _BAD and outcome.error is not None:
                probe.bad += 1
                probe.example = outcome.error.summary

    def _count(self, count: Count) -> None:
        if self.open:  # it began before, or is a probe's: the next window begins when the flow goes on
            return
        with self._changing:
            before = self._counts.get(count.fingerprint)
            attempts = count.attempts + (before.attempts if before else 0)
            self._counts[count.fingerprint] = count._replace(attempts=attempts)

    # -- maintenance's part ----------------------------------------------------------------------------------------

    def see(self, *, is_open: bool) -> bool:
        """True if it has opened since the last look."""
        opened = is_open and not self.open
        self.open = is_open
        if opened:
            self.hand_back = True
            self.take_counts()  # they are of the time before
        return opened

    def end_probe(self, probe: Probe | None) -> None:
        """Only the one that was there before the ledger was asked: the pump may have begun another."""
        if self.probe is probe:
            self.probe = None

    def take_counts(self) -> list[Count]:
        with self._changing:
            counts, self._counts = self._counts, {}
        return list(counts.values())

    def put_back(self, counts: list[Count]) -> None:
        for count in counts:
            self._count(count)

    def why_tripped(self, attempts: int, failures: int, example: str | None, most: int) -> str:
        error = f", {most} times {_short(example)}" if example else ""
        return f"breaker: {failures} of {attempts} attempts failed within {clock.in_words(self.policy.window)}{error}"

    def why_longer(self, probe: Probe) -> str:
        error = f", the last with {_short(probe.example)}" if probe.example else ""
        return f"breaker: {probe.bad} of {probe.good + probe.bad} attempts of its probe failed{error}"


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= 200 else f"{line[:199]}…"
