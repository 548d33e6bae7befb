"""The watchdog: deadlines that must be kept even while the ledger does not answer. It never touches a database."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.queue.failure import ErrorReport
from rowlock.queue.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlock.leases.instance import Instance
    from rowlock.queue.lane import Lane


class Watchdog:
    """Ends handlers that take too long, and everything when the lease ends by the local clock."""

    def __init__(
        self, instance: Instance, lanes: Mapping[str, Lane], report: Callable[[list[Outcome]], None]
    ) -> None:
        self._instance = instance
        self._lanes = lanes
        self._report = report
        timeouts = [lane.flow.timeout / 10 for lane in lanes.values() if lane.flow.timeout]
        self._pause = max(0.01, min([0.5, instance.settings.lease_seconds / 30, *timeouts]))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rowlock-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause):
            self.look()

    def look(self) -> None:
        """One look at every deadline."""
        if not self._instance.alive:
            self._instance.forfeit("it could not renew in time")
        now = clock.monotonic()
        for lane in self._lanes.values():
            late = lane.executor.overdue(now)
            if late:
                error = ErrorReport.plain(
                    "TimedOut", f"the handler ran for more than {lane.flow.timeout:g} s"
                )
                self._report([Outcome(record, "timed_out", error=error) for record in late])
