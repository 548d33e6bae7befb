"""What an app does with flows: it registers them, gives them schedules, and enqueues records."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rowlock.app.opening import Opening
from rowlock.errors import ConfigurationError
from rowlock.queue.flow import ExecutorKind, Flow
from rowlock.queue.letters import DeadLetters
from rowlock.queue.outbox import Outbox
from rowlock.queue.retry import Backoff
from rowlock.queue.schedule import Missed, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from rowlock.leases.limit import Limit
    from rowlock.queue.breaker import Breaker
    from rowlock.queue.enqueue import Enqueued, Key

Handler = TypeVar("Handler", bound="Callable[[Any], Any]")


class Queueing(Opening):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.schedules: dict[str, Schedule] = {}

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
