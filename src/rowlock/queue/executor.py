"""Executors: where handlers run. They start records, end overdue ones, and forget them when the lease is lost."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.queue.gate import LEAVING_SECONDS, Gate, Visitors, still_ours
from rowlock.queue.outcome import Outcome
from rowlock.queue.perform import perform

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.limit import Permit
    from rowlock.queue.flow import Flow
    from rowlock.queue.record import Record

logger = logging.getLogger("rowlock.worker")

Work = list["Record"]  # one record, or one batch of them


class Executor(ABC):
    """Runs one flow's handler on so many slots."""

    def __init__(self, flow: Flow, slots: int, report: Callable[[list[Outcome]], None]) -> None:
        self.flow = flow
        self.slots = slots
        self.report = report
        self.visitors = Visitors()

    @abstractmethod
    def submit(self, work: list[Work]) -> None:
        """Queues work for the slots."""

    @abstractmethod
    def take_back(self) -> list[Record]:
        """Records that were queued and have not started."""

    @abstractmethod
    def overdue(self, now: float) -> list[Record]:
        """Ends whatever has run beyond the flow's timeout, and returns it. Later results are not reported."""

    @abstractmethod
    def abandon(self) -> None:
        """The lease is lost: stop what can be stopped, report nothing of it any more."""

    @abstractmethod
    def close(self) -> None:
        """Ends the slots; running handlers are left to themselves."""


class ThreadExecutor(Executor):
    """Long-lived threads on one local queue: no future, task or timer for each record."""

    def __init__(self, flow: Flow, slots: int, report: Callable[[list[Outcome]], None]) -> None:
        super().__init__(flow, slots, report)
        self._inbox: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: set[Slot] = set()

    def submit(self, work: list[Work]) -> None:
        self._grow(len(work))
        for item in work:
            self._inbox.put(item)

    def _grow(self, wanted: int) -> None:
        """Threads start as they are needed, and stay."""
        if len(self._threads) < self.slots:
            with self._lock:
                for _ in range(min(wanted, self.slots - len(self._threads))):
                    self._add_slot()

    def _add_slot(self) -> None:
        slot = self._new_slot()
        self._threads.add(slot)
        slot.start()

    def _new_slot(self) -> Slot:
        return Slot(self, self._inbox)

    def take_back(self) -> list[Record]:
        taken: list[Record] = []
        while True:
            try:
                work = self._inbox.get_nowait()
            except Empty:
                return taken + self._take_waiting()
            if work is not None:
                taken += work

    def _take_waiting(self) -> list[Record]:
        taken: list[Record] = []
        for slot in list(self._threads):
            turn = slot.turn
            if turn and turn.gate and turn.gate.close():
                taken += self._drop(slot, turn)
        return taken

    def overdue(self, now: float) -> list[Record]:
        if self.flow.timeout is None:
            return []
        found: list[Record] = []
        for slot in list(self._threads):
            turn = slot.turn
            if turn and turn.started is not None and now - turn.started > self.flow.timeout:
                found += self._drop(slot, turn)
        return found

    def abandon(self) -> None:
        self.take_back()
        for slot in list(self._threads):
            if turn := slot.turn:
                self._drop(slot, turn)

    def _drop(self, slot: Slot, turn: Turn) -> Work:
        """A thread cannot be stopped: it goes on alone, unheard, and another takes its place."""
        if turn.gate:
            turn.gate.close()
        with self._lock:
            if not slot.disown(turn):
                return []
            self._threads.discard(slot)
            self._add_slot()
        return turn.work

    def close(self) -> None:
        for _ in self._threads:
            self._inbox.put(None)
        self.visitors.wait(LEAVING_SECONDS)


class Turn:
    """One run of a handler: what it works on, and since when."""

    __slots__ = ("gate", "lost", "permit", "started", "work")

    def __init__(self, work: Work, gate: Gate | None = None) -> None:
        self.work = work
        self.gate = gate
        self.permit: Permit | None = None
        self.lost = False  # its records were not ours any more when it could have started
        self.started: float | None = None


class Slot(threading.Thread):
    """One thread that runs one handler at a time."""

    def __init__(self, executor: Executor, inbox: SimpleQueue[Work | None]) -> None:
        super().__init__(name=f"rowlock-{executor.flow.name}", daemon=True)
        self.executor = executor
        self.flow = executor.flow
        self._inbox = inbox
        self._turns: list[Turn] = []  # one at most

    def run(self) -> None:
        while (work := self._inbox.get()) is not None:
            turn = Turn(work, Gate() if self.flow.limit else None)
            self._turns.append(turn)
            self.prepare(work)
            if turn.gate and not self._admit(turn, turn.gate):
                return  # it was taken away while it waited, and another slot has this one's place
            turn.started = now = clock.monotonic()
            for record in work:
                record._started = now  # noqa: SLF001
            outcomes = [Outcome(record, "lost") for record in work] if turn.lost else self.perform(work)
            if turn.permit is not None:
                turn.permit.end()
            if not self._end(turn):
                logger.warning("%r: its handler ended after it was given up; the result is refused", work[0])
                self.executor.report([outcome._replace(kind="lost") for outcome in outcomes])
                return
            self.executor.report(outcomes)

    def _admit(self, turn: Turn, gate: Gate) -> bool:
        """Waits for the flow's limit; False when the turn was taken away meanwhile."""
        assert self.flow.limit is not None  # noqa: S101 - there is a gate
        since = clock.monotonic()
        with self.executor.visitors:
            turn.permit = gate.wait(self.flow.limit)
        turn.lost = turn.permit is not None and not still_ours(turn.work, since)
        return turn.permit is not None

    def prepare(self, work: Work) -> None:
        """What a slot needs before its handler's time begins to count."""

    def perform(self, work: Work) -> list[Outcome]:
        return perform(self.flow, work)

    @property
    def turn(self) -> Turn | None:
        try:
            return self._turns[0]
        except IndexError:
            return None

    def disown(self, turn: Turn) -> bool:
        """Takes this turn away from the thread; False if it had just ended, even if another has begun."""
        return self._end(turn)

    def _end(self, turn: Turn) -> bool:
        # Either the thread or whoever gives the turn up ends it, never both: a removal cannot be torn.
        try:
            self._turns.remove(turn)
        except ValueError:
            return False
        return True
