"""A program: the services, schedules and workers of one app, run together as one instance until it is told to stop."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from rowlock.errors import ConfigurationError
from rowlock.leases.services import Services
from rowlock.queue.roles import describe
from rowlock.queue.scheduler import Scheduler
from rowlock.queue.worker import Worker
from rowlock.signals import UntilSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlock.leases.instance import Instance
    from rowlock.leases.locks import Locks
    from rowlock.leases.service import Service
    from rowlock.ledger.ledger import Ledger
    from rowlock.queue.flow import Flow
    from rowlock.queue.schedule import Schedule
    from rowlock.queue.worker import Companion

logger = logging.getLogger("rowlock.program")


class Program(UntilSignal):
    """`app.program().run()` works until SIGTERM or SIGINT; `with app.program():` inside a program of your own."""

    def __init__(
        self,
        ledger: Ledger,
        locks: Locks,
        *,
        flows: Sequence[Flow],
        services: Sequence[Service],
        schedules: Sequence[Schedule],
        enqueue: Callable[..., Any],
        concurrency: int | None = None,
        companions: Sequence[Callable[[Instance], Companion]] = (),
    ) -> None:
        if not flows and not services and not schedules:
            raise ConfigurationError(
                "There is nothing to run: register something with @app.flow(…), @app.service(…) or @app.schedule(…)."
            )
        self.instance = locks.instance
        self._settings = ledger.settings
        self._roles = describe(
            flows=[flow.name for flow in flows],
            services=[service.name for service in services],
            schedules=[schedule.name for schedule in schedules],
        )
        self._worker = (
            Worker(ledger, flows, concurrency=concurrency, instance=self.instance, companions=companions)
            if flows
            else None
        )
        self._services = Services(services, locks)
        self._scheduler = Scheduler(ledger, schedules, self.instance, enqueue)
        self._stopping = threading.Event()
        self._leave_now = threading.Event()
        self.instance.on_drain(self._on_drain)

    def start(self) -> None:
        self.instance.announce(self._roles)
        if self._worker is not None:
            self._worker.start()
        self._scheduler.start()
        self._services.start()
        logger.info("instance %s runs %s", self.instance.id, self._roles)

    def stop(self) -> None:
        """Services are told, workers claim no more; what runs may finish in the grace time. Twice: leaves now."""
        if self._stopping.is_set():
            self._leave_now.set()
        self._stopping.set()
        self._services.stop()
        if self._worker is not None:
            self._worker.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Waits until everything has ended; raises what ended the worker, if that was an error."""
        ended = False
        try:
            ended = self._stopping.wait(timeout) if self._worker is None else self._worker.join(timeout)
        except BaseException:
            ended = True  # without its worker the instance must not keep its services from the others
            raise
        finally:
            if ended:
                self._end()
        return ended

    def _end(self) -> None:
        self._scheduler.stop()
        self._services.stop()
        self._services.join(self._settings.grace_seconds, self._leave_now)

    def _on_drain(self) -> None:
        """Told with every heartbeat; the worker hears it by itself."""
        if not self._stopping.is_set():
            logger.info("instance %s drains: its services go to others", self.instance.id)
            self._stopping.set()
            self._services.stop()
