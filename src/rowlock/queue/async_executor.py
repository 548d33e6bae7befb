"""Async handlers: long-lived coroutines on an event loop of their own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.queue.executor import Executor, Work
from rowlock.queue.failure import ErrorReport
from rowlock.queue.gate import LEAVING_SECONDS, pass_gate, still_ours
from rowlock.queue.outcome import Outcome
from rowlock.queue.perform import aperform

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.limit import Limit, Permit
    from rowlock.queue.flow import Flow
    from rowlock.queue.record import Record

logger = logging.getLogger("rowlock.worker")


class AsyncExecutor(Executor):
    """One thread, one loop, `slots` coroutines that pull from a local queue."""

    def __init__(self, flow: Flow, slots: int, report: Callable[[list[Outcome]], None]) -> None:
        super().__init__(flow, slots, report)
        self._waiting: deque[Work] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._running: dict[asyncio.Task[None], tuple[float, Work]] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self._at_gate: dict[asyncio.Task[Permit], Work] = {}
        self._loop = asyncio.new_event_loop()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"rowlock-{flow.name}", daemon=True)
        self._thread.start()

    # -- called from other threads -----------------------------------------------------------------------

    def submit(self, work: list[Work]) -> None:
        self._waiting.extend(work)
        self._loop.call_soon_threadsafe(self._wake, len(work))

    def take_back(self) -> list[Record]:
        taken: list[Record] = []
        while self._waiting:
            try:
                taken += self._waiting.popleft()
            except IndexError:  # a coroutine was quicker
                break
        return taken + self._take_waiting()

    def _take_waiting(self) -> list[Record]:
        """Whoever pops it has it: its slot pops it too before it starts."""
        taken: list[Record] = []
        for waiting in list(self._at_gate):
            if (work := self._at_gate.pop(waiting, None)) is not None:
                self._loop.call_soon_threadsafe(waiting.cancel)
                taken += work
        return taken

    def overdue(self, now: float) -> list[Record]:
        timeout = self.flow.timeout
        if timeout is None:
            return []
        return self._give_up(lambda started: now - started > timeout)

    def abandon(self) -> None:
        self.take_back()
        self._give_up(lambda _started: True)

    def close(self) -> None:
        self._closing = True
        self._loop.call_soon_threadsafe(self._wake, self.slots)
        self.visitors.wait(LEAVING_SECONDS)

    def _give_up(self, chosen: Callable[[float], bool]) -> list[Record]:
        found: list[Record] = []
        for task, (started, work) in list(self._running.items()):
            # Whoever pops it has it: the coroutine pops it too before it reports.
            if chosen(started) and self._running.pop(task, None) is not None:
                self._given_up.add(task)
                self._loop.call_soon_threadsafe(task.cancel)
                found += work
        return found

    # -- on the loop ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        tasks = [asyncio.create_task(self._slot()) for _ in range(self.slots)]
        await asyncio.gather(*tasks)

    def _wake(self, count: int) -> None:
        while self._idle and count:
            future = self._idle.popleft()
            if not future.done():
                future.set_result(None)
                count -= 1

    async def _slot(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        while not self._closing:
            try:
                work = self._waiting.popleft()
            except IndexError:
                await self._rest()
                continue
            if self.flow.limit is None:
                await self._serve(task, work)
            else:
                await self._serve_limited(task, work, self.flow.limit)

    async def _rest(self) -> None:
        future = self._loop.create_future()
        self._idle.append(future)
        # Work may have come between the look and the bed.
        if self._waiting or self._closing:
            self._wake(1)
        await future

    async def _serve_limited(self, task: asyncio.Task[None], work: Work, limit: Limit) -> None:
        """Waits in a task of its own, so that what takes the work back cannot cancel whatever comes next."""
        since = clock.monotonic()
        waiting = asyncio.create_task(pass_gate(limit))
        self._at_gate[waiting] = work
        with self.visitors:
            try:
                permit = await waiting
            except asyncio.CancelledError:
                return
            if self._at_gate.pop(waiting, None) is None:
                await asyncio.to_thread(permit.end)
                return
        permit.belongs_to(task)
        if await asyncio.to_thread(still_ours, work, since):
            await self._serve(task, work, permit)
        else:
            await asyncio.to_thread(permit.end)
            self.report([Outcome(record, "lost") for record in work])

    async def _serve(self, task: asyncio.Task[None], work: Work, permit: Permit | None = None) -> None:
        now = clock.monotonic()
        for record in work:
            record._started = now  # noqa: SLF001
        self._running[task] = (now, work)
        try:
            outcomes = await aperform(self.flow, work)
        except asyncio.CancelledError as error:
            if task in self._given_up:
                self._given_up.discard(task)
                task.uncancel()
                if permit is not None:
                    await asyncio.to_thread(permit.end)
                return
            outcomes = [Outcome(r, "failed", error=ErrorReport.of(error)) for r in work if not r.settled]
        if self._running.pop(task, None) is None:
            # It finished in the moment it was given up: its cancellation is on the way, and meant for this work.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                task.uncancel()
            self._given_up.discard(task)
            outcomes = [outcome._replace(kind="lost") for outcome in outcomes]
        if permit is not None:
            await asyncio.to_thread(permit.end)
        self.report(outcomes)
