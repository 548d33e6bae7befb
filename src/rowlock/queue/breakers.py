"""The breakers of one worker's flows: counted into the ledger about once a second, tripped, probed, closed.

Every worker does this; the ledger's conditions see to it that each step happens once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.errors import LedgerError
from rowlock.queue.flow_breaker import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlock.leases.instance import Instance
    from rowlock.ledger.ledger import Ledger, Row
    from rowlock.queue.flow_breaker import FlowBreaker
    from rowlock.queue.lane import Lane

logger = logging.getLogger("rowlock.breaker")

_EVERY_SECONDS = 1.0


class Breakers:
    """Maintenance's part of the breakers."""

    def __init__(
        self, ledger: Ledger, instance: Instance, lanes: Iterable[Lane], wake: Callable[[], None]
    ) -> None:
        self._ledger = ledger
        self._instance = instance
        self._lanes = [lane for lane in lanes if lane.breaker is not None]
        self._wake = wake
        self._next = 0.0

    def tick(self) -> float:
        """Does what is due; seconds until the next time."""
        if not self._lanes:
            return _EVERY_SECONDS * 3600
        now = clock.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_SECONDS
            for lane in self._lanes:
                if lane.breaker is not None:
                    self.look(lane, lane.breaker)
        return max(0.0, self._next - clock.monotonic())

    def look(self, lane: Lane, breaker: FlowBreaker) -> None:
        """One flow's turn."""
        self._add_counts(breaker)
        probe = breaker.probe
        row = self._ledger.breakers.look(breaker.flow, breaker.policy.window)
        if row is None:
            return
        if breaker.see(is_open=row.breaker is not None):
            self._wake()
        me = self._instance.id
        if row.breaker is None:
            breaker.end_probe(probe)
            if row.flow_state == "active" and breaker.policy.trips(row.attempts, row.failures):
                self._trip(breaker, row)
        elif row.prober == me and probe is not None:
            self._judge(lane, breaker, probe)
        elif row.probe_seconds <= 0 and not (row.prober_lives and row.prober != me):
            breaker.probe_wanted = True
            self._wake()
        else:
            breaker.end_probe(probe)

    def _add_counts(self, breaker: FlowBreaker) -> None:
        counts = breaker.take_counts()
        if not counts:
            return
        try:
            self._ledger.breakers.add(breaker.flow, breaker.policy.window, counts)
        except LedgerError:
            breaker.put_back(counts)
            raise

    def _trip(self, breaker: FlowBreaker, row: Row) -> None:
        reason = breaker.why_tripped(row.attempts, row.failures, row.example, row.most)
        if self._ledger.breakers.trip(breaker.flow, breaker.policy.pause, reason):
            pause = clock.in_words(breaker.policy.pause)
            logger.error("flow %s is paused, and is tried in %s: %s", breaker.flow, pause, reason)
            breaker.see(is_open=True)
            self._wake()

    def begin_probe(self, breaker: FlowBreaker) -> None:
        """The pump's part: no claim of its own is under way that asked for more than a probe may have."""
        breaker.probe_wanted = False
        if breaker.probe is not None:
            return
        # If the reply is lost it stays: the ledger may say that we probe, and the next look tells.
        breaker.probe = Probe(breaker.policy.probes)
        if self._ledger.breakers.probe(breaker.flow, self._instance.id):
            logger.warning("flow %s: its breaker tries up to %d records", breaker.flow, breaker.policy.probes)
        else:
            breaker.probe = None

    def _judge(self, lane: Lane, breaker: FlowBreaker, probe: Probe) -> None:
        if not probe.is_over(list(lane.in_hand)):
            return
        tried = probe.good + probe.bad
        if tried == 0:  # rejected or postponed, all of them: that says nothing about the flow
            breaker.probe = Probe(breaker.policy.probes)
            self._wake()
        elif breaker.policy.fails(tried, probe.bad):
            reason = breaker.why_longer(probe)
            row = self._ledger.breakers.longer(
                breaker.flow, self._instance.id, breaker.policy.longest_pause, reason
            )
            breaker.probe = None
            if row is not None:
                pause = clock.in_words(row.pause_seconds)
                logger.error(
                    "flow %s stays paused, and is tried again in %s: %s", breaker.flow, pause, reason
                )
        else:
            if self._ledger.breakers.resume(breaker.flow, self._instance.id):
                logger.warning("flow %s goes on: %d of %d tries were good", breaker.flow, probe.good, tried)
            breaker.probe = None
            self._wake()
