"""Rowlock: what a program builds. It registers flows, services, schedules and exporters, and runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock.app.exporting import Exporting
from rowlock.app.leasing import Leasing
from rowlock.app.queueing import Queueing
from rowlock.errors import UnknownFlow
from rowlock.program import Program
from rowlock.queue.processor import DistributedProcessor
from rowlock.queue.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlock.queue.flow import Flow
    from rowlock.settings import Settings


class Rowlock(Queueing, Exporting, Leasing):
    """One program's view of one ledger.

    `Rowlock()` reads its settings from the environment and `rowlock.toml`; `Rowlock("postgresql://…")` names the
    ledger itself. Nothing is connected until it is needed. A SQLite ledger is created and kept up to date by
    itself; any other one by `rowlock migrate`.
    """

    def __init__(self, ledger_url: str | None = None, *, settings: Settings | None = None) -> None:
        super().__init__(ledger_url, settings=settings)

    def program(
        self,
        *,
        flows: Iterable[str] | None = None,
        concurrency: int | None = None,
        name: str | None = None,
    ) -> Program:
        """Everything this app has, run together as one instance: its services, its schedules and a worker.

        `app.program().run()` works until a signal, as `rowlock run` does; `with app.program():` in a program.
        """
        chosen = self._chosen(flows)
        if name is not None:
            self._name = name
        return Program(
            self.ledger,
            self.locks,
            flows=chosen,
            services=list(self.services.values()),
            schedules=list(self.schedules.values()),
            enqueue=self.enqueue,
            concurrency=concurrency,
            companions=self.companions(),
        )

    def worker(
        self,
        flows: Iterable[str] | None = None,
        *,
        concurrency: int | None = None,
        name: str | None = None,
        until_empty: bool = False,
    ) -> Worker:
        """A worker for these flows, or all. `worker.run()` works until a signal; `with app.worker():` in a program."""
        chosen = self._chosen(flows)
        return Worker(
            self.ledger,
            chosen,
            concurrency=concurrency,
            name=name,
            until_empty=until_empty,
            companions=self.companions(),
        )

    def _chosen(self, flows: Iterable[str] | None) -> list[Flow]:
        names = list(self.flows) if flows is None else list(flows)
        for wanted in names:
            if wanted not in self.flows:
                raise UnknownFlow(
                    f"flow {wanted!r} is not registered here; there are: {', '.join(self.flows) or 'none'}."
                )
        return [self.flows[wanted] for wanted in names]

    def processor(self, *, name: str | None = None) -> DistributedProcessor:
        """The low-level face, for a program with a loop of its own."""
        return DistributedProcessor(self.ledger, self.flows, name=name)
