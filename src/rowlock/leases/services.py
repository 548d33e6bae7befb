"""The services of one program: started together, told to stop together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.leases.service_loop import ServiceLoop
from rowlock.leases.service_runner import ServiceRunner

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from rowlock.leases.locks import Locks
    from rowlock.leases.service import Service

_LOOK_SECONDS = 0.1


class Services:
    def __init__(self, services: Iterable[Service], locks: Locks) -> None:
        self._loop = ServiceLoop()
        self._runners = [ServiceRunner(service, locks, self._loop) for service in services]

    def start(self) -> None:
        for runner in self._runners:
            runner.start()

    def stop(self) -> None:
        """Tells all of them, at once; `join` waits."""
        for runner in self._runners:
            runner.stop()

    def join(self, timeout: float, leave_now: threading.Event) -> None:
        """Gives their functions so long to come back, and less when somebody is in a hurry."""
        give_up = clock.monotonic() + timeout
        while any(runner.running for runner in self._runners):
            if clock.monotonic() >= give_up or leave_now.wait(_LOOK_SECONDS):
                break
        for runner in self._runners:
            runner.leave()
        self._loop.close()
