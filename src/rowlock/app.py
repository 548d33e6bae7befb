"""Rowlock: what a program builds. It registers flows, services and schedules, and runs them."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rowlock.errors import ConfigurationError, UnknownFlow
from rowlock.jobs.ending import EndHandler
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.exporters import Exporters
from rowlock.jobs.finalizer import END_FLOW, SWEEP_FLOW, Finalizer
from rowlock.jobs.handling import ExportHandler, Workshop
from rowlock.jobs.inputs import IndexInput
from rowlock.jobs.jobs import Jobs
from rowlock.jobs.sweeping import SweepHandler
from rowlock.leases.instance import Instance
from rowlock.leases.leader import Leader
from rowlock.leases.limit import Limit
from rowlock.leases.lock import Lock
from rowlock.leases.locks import Locks
from rowlock.leases.service import Service
from rowlock.ledger.ledger import Ledger
from rowlock.program import Program
from rowlock.queue.enqueue import Enqueued, Enqueuer, Key
from rowlock.queue.flow import ExecutorKind, Flow
from rowlock.queue.letters import DeadLetters
from rowlock.queue.outbox import Outbox
from rowlock.queue.processor import DistributedProcessor
from rowlock.queue.retry import Backoff
from rowlock.queue.schedule import Missed, Schedule
from rowlock.queue.worker import Worker
from rowlock.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from pydantic import BaseModel

    from rowlock.databases.manager import DatabaseManager
    from rowlock.jobs.exporter import Compression, Format
    from rowlock.jobs.storage import ArtifactStore
    from rowlock.leases.lease import Lease
    from rowlock.queue.breaker import Breaker
    from rowlock.queue.worker import Companion

Handler = TypeVar("Handler", bound="Callable[[Any], Any]")
Function = TypeVar("Function", bound="Callable[..., Any]")


class Rowlock:
    """One program's view of one ledger.

    `Rowlock()` reads its settings from the environment and `rowlock.toml`; `Rowlock("postgresql://…")` names the
    ledger itself. Nothing is connected until it is needed. A SQLite ledger is created and kept up to date by
    itself; any other one by `rowlock migrate`.
    """

    def __init__(self, ledger_url: str | None = None, *, settings: Settings | None = None) -> None:
        if settings is not None and ledger_url is not None:
            raise ConfigurationError("Give Rowlock a URL or settings, not both: the settings hold a URL.")
        self.settings = settings or load_settings(ledger_url=ledger_url)
        self.flows: dict[str, Flow] = {}
        self.services: dict[str, Service] = {}
        self.schedules: dict[str, Schedule] = {}
        self._name: str | None = None
        self._opening = threading.RLock()  # threads may be the first to use something at the same time
        self.exporters = Exporters(self.settings)
        for declared in self.exporters.values():
            self._add_export_flow(declared)

    @cached_property
    def locks(self) -> Locks:
        """This process as an instance that takes leases; registered at the first use, gone with `close()`."""
        with self._opening:
            return self.__dict__.get("locks") or self._open_locks()

    def _open_locks(self) -> Locks:
        locks = Locks(Instance(self.settings, name=self._name), self.ledger)
        locks.instance.start()
        self.__dict__["locks"] = locks  # before the next thread is let in
        return locks

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, opened at the first use; SchemaMismatch if its tables do not fit this code."""
        with self._opening:
            return self.__dict__.get("ledger") or self._open_ledger()

    def _open_ledger(self) -> Ledger:
        ledger = Ledger.open(self.settings)
        try:
            # Only if it must: the first use may be inside the caller's own transaction, which has the write lock.
            if ledger.dialect == "sqlite" and ledger.schema.version() < ledger.schema.latest:
                ledger.schema.migrate()
            ledger.schema.check()
        except BaseException:
            ledger.close()  # nobody else knows it yet
            raise
        self.__dict__["ledger"] = ledger
        return ledger

    def close(self) -> None:
        """Gives back what is held and closes what was opened; it opens again at the next use."""
        if "locks" in self.__dict__:
            locks = self.__dict__.pop("locks")
            locks.instance.stop()
            locks.close()
        self.__dict__.pop("jobs", None)
        if "_enqueuer" in self.__dict__:
            self.__dict__.pop("_enqueuer").close()
        if "databases" in self.__dict__:
            self.__dict__.pop("databases").close()
        if "ledger" in self.__dict__:
            self.__dict__.pop("ledger").close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- flows -----------------------------------------------------------------------------------------

    def flow(
        self,
        name: str,
        *,
        max_attempts: int = 5,
        max_deaths: int = 3,
        backoff: Backoff | None = None,
        timeout: float | None = None,
        concurrency: int = 8,
        batch: int | None = None,
        executor: ExecutorKind | None = None,
        limit: Limit | None = None,
        breaker: Breaker | None = None,
    ) -> Callable[[Handler], Handler]:
        """Registers a handler. It stays the plain function it was.

        Args:
            name: the flow's name; the same in every copy of the program.
            max_attempts: after so many attempts that raised or timed out, a record is dead.
            max_deaths: after its worker died so many times under it, a record is dead.
            backoff: how long a failed record waits; exponential with full jitter.
            timeout: seconds a handler may take. Async handlers are cancelled, processes killed; a thread cannot be
                stopped, but whatever it still reports or writes under its token is refused.
            concurrency: records that run at the same time in one worker.
            batch: the handler gets a list of up to so many records.
            executor: "process" for CPU-bound work. `async def` handlers run on an event loop, others in threads.
            limit: `app.limit(…)`; a handler starts only within it. A batch is one use.
            breaker: `Breaker(…)`; pauses the flow by itself when too many attempts fail.

        """

        def register(handler: Handler) -> Handler:
            if name in self.flows:
                raise ConfigurationError(
                    f"flow {name!r} is already registered, for {self.flows[name].address}."
                )
            flow = Flow(
                name=name,
                handler=handler,
                max_attempts=max_attempts,
                max_deaths=max_deaths,
                backoff=backoff or Backoff(),
                timeout=timeout,
                concurrency=concurrency,
                batch=batch,
                executor=executor or "thread",
                limit=limit,
                breaker=breaker,
            )
            self.flows[name] = flow
            with suppress(AttributeError):  # a method or a builtin takes no attributes, and needs none
                handler.flow = flow  # type: ignore[attr-defined]
            return handler

        return register

    # -- exporters -------------------------------------------------------------------------------------

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

    def _companions(self) -> list[Callable[[Instance], Companion]]:
        """What runs beside every worker of this app."""
        if not self.exporters:
            return []
        return [lambda instance: Finalizer(self.ledger, self.jobs, instance, self.enqueue)]

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

    # -- schedules -------------------------------------------------------------------------------------

    def schedule(
        self,
        cron: str,
        *,
        tz: str = "UTC",
        name: str | None = None,
        missed: Missed = "once",
        late_after: float = 60.0,
        payload: Mapping[str, Any] | None = None,
        priority: int = 0,
    ) -> Callable[[Handler], Handler]:
        """Gives a flow one record for each tick, and no tick twice, however many programs run.

        Put it over `@app.flow(…)`, or over a plain handler, which then becomes a flow of its own name. The record's
        payload has the `tick` and the `schedule`. `rowlock run` and `app.program()` see to it.

        Args:
            cron: minute hour day month weekday, as in "0 6 * * 1-5"; six fields have the seconds first.
            tz: the time zone in which the ticks are meant.
            name: of the schedule; otherwise the flow's. Two schedules of one flow need names.
            missed: what becomes of ticks at which nothing ran: "skip" them, one record for all of them ("once"), or
                one for each ("all").
            late_after: seconds after which a tick counts as missed.
            payload: more fields for the record.
            priority: of its records.

        """

        def register(handler: Handler) -> Handler:
            flow: Flow | None = getattr(handler, "flow", None)
            if flow is None:
                self.flow(name or handler.__name__)(handler)
                flow = self.flows[name or handler.__name__]
            schedule = Schedule(
                name=name or flow.name,
                cron=cron,
                flow=flow.name,
                tz=tz,
                missed=missed,
                late_after=late_after,
                payload=payload or {},
                priority=priority,
            )
            if schedule.name in self.schedules:
                raise ConfigurationError(
                    f"schedule {schedule.name!r} is there already: give this one a name of its own, name=…"
                )
            self.schedules[schedule.name] = schedule
            return handler

        return register

    # -- records ---------------------------------------------------------------------------------------

    @cached_property
    def _enqueuer(self) -> Enqueuer:
        return Enqueuer(self.ledger, self.flows)

    def enqueue(
        self,
        flow: str,
        payloads: Any,
        *,
        key: Key = None,
        priority: int = 0,
        run_at: datetime | None = None,
        connection: Any = None,
    ) -> Enqueued:
        """Enqueues one payload, or all of an iterable of payloads: all or nothing.

        Args:
            flow: a flow that some program has registered.
            payloads: a JSON value, or an iterable of them (a dict or a string counts as one payload).
            key: the record's key, or a function that makes it from a payload. For as long as its history is kept,
                one (flow, key) is accepted once.
            priority: 0 (normal) to 100 (first).
            run_at: not before this time.
            connection: your own SQLAlchemy, psycopg or sqlite3 connection to the ledger's database: the records
                then belong to your transaction, and exist if and only if it commits.

        """
        return self._enqueuer.enqueue(
            flow, payloads, key=key, priority=priority, run_at=run_at, connection=connection
        )

    async def aenqueue(
        self, flow: str, payloads: Any, *, key: Key = None, priority: int = 0, run_at: datetime | None = None
    ) -> Enqueued:
        """`enqueue`, off the event loop."""
        call = partial(self.enqueue, flow, payloads, key=key, priority=priority, run_at=run_at)
        return await asyncio.to_thread(call)

    def outbox(self, flow: str) -> Outbox:
        """Inserts rows once, and tells about each new one through a record of this flow, in the same transaction."""
        return Outbox(self.ledger, lambda: self._enqueuer, flow)

    @property
    def dead_letters(self) -> DeadLetters:
        return DeadLetters(self.ledger)

    # -- leases ------------------------------------------------------------------------------------------

    def lock(self, name: str, *, ttl: float = 60, wait: float | None = None, note: str | None = None) -> Lock:
        """`with app.lock("edgar_monitor") as lease:`, or `async with`; one holder in the whole fleet.

        Args:
            name: what must be done by one at a time; at most 255 characters.
            ttl: seconds after which others may have it when the holder has died. While it lives, its heartbeat
                renews the lease, however long the work takes.
            wait: seconds to wait in line before LockHeld is raised; 0 tries once, None waits as long as it takes.
            note: what the holder does, for whoever looks at `rowlock locks`.

        """
        return Lock(lambda: self.locks, name, ttl=ttl, wait=wait, note=note)

    def try_lock(self, name: str, *, ttl: float = 60, note: str | None = None) -> Lease | None:
        """The lease if it is free now, otherwise None. Use it as a context manager, or release it."""
        return self.lock(name, ttl=ttl, wait=0, note=note).try_acquire()

    async def atry_lock(self, name: str, *, ttl: float = 60, note: str | None = None) -> Lease | None:
        """`try_lock`, off the event loop."""
        return await self.lock(name, ttl=ttl, wait=0, note=note).atry_acquire()

    def leader(self, name: str, *, ttl: float = 30) -> Leader:
        """An election: one instance leads, the others stand in line. `with app.leader("reports") as election:`."""
        return Leader(lambda: self.locks, name, ttl=ttl)

    def service(
        self,
        name: str,
        *,
        every: float | None = None,
        ttl: float = 30,
        on_start: Callable[..., Any] | None = None,
        on_stop: Callable[..., Any] | None = None,
        longest_pause: float = 60,
        limit: Limit | None = None,
    ) -> Callable[[Function], Function]:
        """Registers a function that runs on exactly one instance; `rowlock run` and `app.program()` see to it.

        The function, plain or async, is given its ServiceRun if it takes an argument. What it writes through
        `run.transaction()` is fenced: refused when another instance has taken over.

        Args:
            name: of the service; the same in every copy of the program.
            every: seconds from one run to the next. Without it the function runs on, and is started again when it
                returns or raises.
            ttl: seconds after which another instance takes over when this one has died.
            on_start: called when this instance has become the one.
            on_stop: called when it stops being the one, unless it died.
            longest_pause: after a crash it is started again after 1 s, 2 s, 4 s, … up to this.
            limit: `app.limit(…)`; each run is one use of it.

        """

        def register(function: Function) -> Function:
            if name in self.services:
                raise ConfigurationError(f"service {name!r} is already registered.")
            self.services[name] = Service(
                name=name,
                function=function,
                every=every,
                ttl=ttl,
                on_start=on_start,
                on_stop=on_stop,
                longest_pause=longest_pause,
                limit=limit,
            )
            return function

        return register

    def limit(
        self,
        name: str,
        *,
        rate: str | None = None,
        concurrency: int | None = None,
        burst: int = 1,
        ttl: float = 60,
        wait: float | None = None,
    ) -> Limit:
        """A budget that all instances share: `with app.limit("sec.gov", rate="10/s", concurrency=4):`.

        Make it once and use it from any number of threads and tasks; give it to flows and services as `limit=`.
        Nothing is connected until its first use. If instances declare one name differently, the last one counts.

        Args:
            name: what is limited; at most 240 characters.
            rate: how many uses may start: "10/s", "600/m", "5000/h", "1/d".
            concurrency: how many uses there may be at the same time, 1 to 1000.
            burst: how many may start at once after an idle time; 1 spaces them evenly.
            ttl: seconds after which a dead holder's slot is free again.
            wait: seconds to wait before LimitReached is raised; 0 tries once, None waits as long as it takes. Flows
                wait as long as it takes.

        """
        return Limit(
            lambda: self.locks, name, rate=rate, concurrency=concurrency, burst=burst, ttl=ttl, wait=wait
        )

    # -- work --------------------------------------------------------------------------------------------

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
            companions=self._companions(),
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
            companions=self._companions(),
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
