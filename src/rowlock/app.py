"""Rowlock: what a program builds. It registers flows, enqueues records and makes workers."""

from __future__ import annotations

import asyncio
import threading
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rowlock.errors import ConfigurationError, UnknownFlow
from rowlock.leases.instance import Instance
from rowlock.leases.limit import Limit
from rowlock.leases.lock import Lock
from rowlock.leases.locks import Locks
from rowlock.ledger.ledger import Ledger
from rowlock.queue.enqueue import Enqueued, Enqueuer, Key
from rowlock.queue.flow import ExecutorKind, Flow
from rowlock.queue.letters import DeadLetters
from rowlock.queue.processor import DistributedProcessor
from rowlock.queue.retry import Backoff
from rowlock.queue.worker import Worker
from rowlock.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from rowlock.leases.lease import Lease
    from rowlock.queue.breaker import Breaker

Handler = TypeVar("Handler", bound="Callable[[Any], Any]")


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
        self._opening = threading.Lock()

    @cached_property
    def locks(self) -> Locks:
        """This process as an instance that takes leases; registered at the first use, gone with `close()`."""
        instance = Instance(self.settings)
        locks = Locks(instance, self.ledger)
        instance.start()
        return locks

    def _open_locks(self) -> Locks:
        """The first use may be several threads' at once."""
        with self._opening:
            return self.locks

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, opened at the first use; SchemaMismatch if its tables do not fit this code."""
        ledger = Ledger.open(self.settings)
        try:
            # Only if it must: the first use may be inside the caller's own transaction, which has the write lock.
            if ledger.dialect == "sqlite" and ledger.schema.version() < ledger.schema.latest:
                ledger.schema.migrate()
            ledger.schema.check()
        except BaseException:
            ledger.close()  # nobody else knows it yet
            raise
        return ledger

    def close(self) -> None:
        """Gives back what is held and closes what was opened; it opens again at the next use."""
        if "locks" in self.__dict__:
            locks = self.__dict__.pop("locks")
            locks.close()  # whatever it still runs uses the instance's connections
            locks.instance.stop()
        if "_enqueuer" in self.__dict__:
            self.__dict__.pop("_enqueuer").close()
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
            handler.flow = flow  # type: ignore[attr-defined]
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
        return Lock(self._open_locks, name, ttl=ttl, wait=wait, note=note)

    def try_lock(self, name: str, *, ttl: float = 60, note: str | None = None) -> Lease | None:
        """The lease if it is free now, otherwise None. Use it as a context manager, or release it."""
        return self.lock(name, ttl=ttl, wait=0, note=note).try_acquire()

    async def atry_lock(self, name: str, *, ttl: float = 60, note: str | None = None) -> Lease | None:
        """`try_lock`, off the event loop."""
        return await self.lock(name, ttl=ttl, wait=0, note=note).atry_acquire()

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
            self._open_locks, name, rate=rate, concurrency=concurrency, burst=burst, ttl=ttl, wait=wait
        )

    # -- work --------------------------------------------------------------------------------------------

    def worker(
        self,
        flows: Iterable[str] | None = None,
        *,
        concurrency: int | None = None,
        name: str | None = None,
        until_empty: bool = False,
    ) -> Worker:
        """A worker for these flows, or all. `worker.run()` works until a signal; `with app.worker():` in a program."""
        names = list(self.flows) if flows is None else list(flows)
        for wanted in names:
            if wanted not in self.flows:
                raise UnknownFlow(
                    f"flow {wanted!r} is not registered here; there are: {', '.join(self.flows) or 'none'}."
                )
        chosen = [self.flows[wanted] for wanted in names]
        return Worker(self.ledger, chosen, concurrency=concurrency, name=name, until_empty=until_empty)

    def processor(self, *, name: str | None = None) -> DistributedProcessor:
        """The low-level face, for a program with a loop of its own."""
        return DistributedProcessor(self.ledger, self.flows, name=name)
