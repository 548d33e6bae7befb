"""What an app does with export jobs: it registers exporters, and knows the jobs and where their files are."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from rowlock.app.opening import Opening
from rowlock.jobs.ending import EndHandler
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.exporters import Exporters
from rowlock.jobs.finalizer import END_FLOW, SWEEP_FLOW, Finalizer
from rowlock.jobs.handling import ExportHandler, Workshop
from rowlock.jobs.inputs import IndexInput
from rowlock.jobs.jobs import Jobs
from rowlock.jobs.sweeping import SweepHandler
from rowlock.queue.flow import Flow
from rowlock.queue.retry import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import BaseModel

    from rowlock.databases.manager import DatabaseManager
    from rowlock.jobs.exporter import Compression, Format
    from rowlock.jobs.storage import ArtifactStore
    from rowlock.leases.instance import Instance
    from rowlock.queue.worker import Companion

Function = TypeVar("Function", bound="Callable[..., Any]")


class Exporting(Opening):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.exporters = Exporters(self.settings)
        for declared in self.exporters.values():
            self._add_export_flow(declared)

    def exporter(
        self,
        name: str,
        *,
        input: type[BaseModel] | Mapping[str, Any] | None = None,  # noqa: A002 - it is what users call it
        format: Format = "csv",  # noqa: A002
        compression: Compression | None = None,
        path: str | None = None,
        key: Iterable[str] = (),
        columns: Iterable[str] | None = None,
        schema: Any = None,
        max_attempts: int = 5,
        backoff: Backoff | None = None,
        timeout: float | None = None,
        concurrency: int = 8,
    ) -> Callable[[Function], Function]:
        """Registers a function that makes a file from an input: it yields dicts, tuples, Arrow batches or bytes.

        It is given the input, and its ExportContext if it takes a second argument.

        Args:
            name: of the exporter; its flow is `export.NAME`.
            input: a pydantic model or a JSON Schema; otherwise `indexKey`, `effectiveDate` and `asofindicator`.
            format: "csv", "jsonl" or "parquet".
            compression: "gzip" or "zstd".
            path: of the file in its job's folder, with `{fields}` of the input, `{ext}` and `{key}`.
            key: the fields that make an input what it is; otherwise all of them.
            columns: the file's heading; needed for tuples.
            schema: a pyarrow schema, for Parquet.
            max_attempts: after so many attempts that failed, an input is dead.
            backoff: how long a failed input waits.
            timeout: seconds an attempt may take.
            concurrency: files that are made at the same time in one worker.

        """

        def register(function: Function) -> Function:
            exporter = Exporter(
                name=name,
                produce=function,
                model=IndexInput if input is None else input,
                format=format,
                compression=compression,
                path=path,
                key_fields=tuple(key),
                columns=None if columns is None else tuple(columns),
                schema=schema,
                max_attempts=max_attempts,
                backoff=backoff or Backoff(),
                timeout=timeout,
                concurrency=concurrency,
            )
            self.exporters.add(exporter)
            self._add_export_flow(exporter)
            return function

        return register

    def _add_export_flow(self, exporter: Exporter) -> None:
        """An exporter's inputs are records: they are claimed, retried and dead-lettered like any other."""
        workshop = Workshop(self.settings, lambda: self.ledger, lambda: self.store, lambda: self.databases)
        self.flows[exporter.flow_name] = Flow(
            name=exporter.flow_name,
            handler=ExportHandler(exporter, workshop),
            max_attempts=exporter.max_attempts,
            max_deaths=exporter.max_deaths,
            backoff=exporter.backoff,
            timeout=exporter.timeout,
            concurrency=exporter.concurrency,
        )
        if END_FLOW not in self.flows:
            ending = EndHandler(lambda: self.jobs, workshop)
            self.flows[END_FLOW] = Flow(name=END_FLOW, handler=ending, max_attempts=20)
            sweeping = SweepHandler(lambda: self.jobs, workshop)
            self.flows[SWEEP_FLOW] = Flow(name=SWEEP_FLOW, handler=sweeping, concurrency=1)

    @cached_property
    def jobs(self) -> Jobs:
        """Export jobs: submit, look, cancel, drive again."""
        return Jobs(self.ledger, self.exporters)

    def companions(self) -> list[Callable[[Instance], Companion]]:
        """What runs beside every worker and server of this app: one of all the finalizers is elected."""
        if not self.exporters:
            return []
        flows = [self.flows[END_FLOW], self.flows[SWEEP_FLOW]]
        return [lambda instance: Finalizer(self.ledger, self.jobs, instance, self._enqueuer.enqueue, flows)]

    @cached_property
    def databases(self) -> DatabaseManager:
        """The named databases; connected when they are first used."""
        from rowlock.databases.manager import DatabaseManager  # noqa: PLC0415 - not every program has them

        return DatabaseManager(self.settings)

    @cached_property
    def store(self) -> ArtifactStore:
        """Where files are kept: ROWLOCK_STORAGE_URL."""
        from rowlock.jobs.storage import ArtifactStore  # noqa: PLC0415 - not every program has files

        return ArtifactStore.from_settings(self.settings)
