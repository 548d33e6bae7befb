"""The fleet: worker processes and the enqueuer, kept running whatever happens to them."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from queue import Empty
from typing import TYPE_CHECKING, Literal

from rowlock.errors import RowlockError

if TYPE_CHECKING:
    from pathlib import Path

    from rowlock.proof.routes import Route, Routes

State = Literal["running", "stopped", "leaving", "ended"]
_LEAVE_SECONDS = 30.0
_LATER = 0.3
_MOST_FAILURES = 200


class FleetFailed(RowlockError):
    """The processes of the run cannot be kept running: their logs in the run's folder say why."""


@dataclass(eq=False)
class Member:
    """One process of the fleet."""

    pid: int
    task: str
    route: Route
    started: float
    state: State = "running"

    def signal(self, number: int) -> bool:
        """False if it has ended."""
        return self.route.zygote.signal(self.pid, number)


class Fleet:
    """Members are started anew as they end. A nemesis takes one with `lock` held, so that nobody else strikes it too."""

    def __init__(self, folder: Path, routes: Routes, workers: int) -> None:
        self._folder = folder
        self._routes = routes
        self._workers = workers
        self.lock = threading.RLock()
        self.members: list[Member] = []
        self.enqueuer_done = False
        self.starts = 0
        self.unexpected: list[str] = []
        self._closing = False
        self._due: list[tuple[float, str]] = []
        self._failures_in_row = 0

    def start(self) -> None:
        self._fork("enqueuer", self._routes.direct)
        for _ in range(self._workers):
            self._fork("worker", self._route())

    def workers(self) -> list[Member]:
        """Those that run, and that nobody does anything to."""
        with self.lock:
            return [m for m in self.members if m.task == "worker" and m.state == "running"]

    def enqueuer(self) -> Member | None:
        with self.lock:
            return next((m for m in self.members if m.task == "enqueuer" and m.state == "running"), None)

    def tend(self) -> None:
        """Buries who has ended, and starts others in their place."""
        with self.lock:
            for route in {route.zygote: route for route in self._routes.all}.values():
                while True:
                    try:
                        pid, code = route.zygote.endings.get_nowait()
                    except Empty:
                        break
                    self._ended(pid, code)
            now = time.monotonic()
            due = [task for at, task in self._due if at <= now]
            self._due = [(at, task) for at, task in self._due if at > now]
            for task in due:
                self._fork(task, self._route() if task == "worker" else self._routes.direct)

    def _route(self) -> Route:
        """The one that the fewest workers are on."""
        taken = Counter(member.route.name for member in self.members if member.task == "worker")
        return min(self._routes.all, key=lambda route: taken[route.name])

    def leave(self) -> None:
        """Everybody is asked to end in good order."""
        with self.lock:
            self._closing = True
            self._due.clear()
            for member in self.members:
                member.signal(signal.SIGCONT)
                member.signal(signal.SIGTERM)
                member.state = "leaving"
        give_up = time.monotonic() + _LEAVE_SECONDS
        while self.members and time.monotonic() < give_up:
            self.tend()
            time.sleep(0.02)
        for member in self.members:
            self.unexpected.append(f"{member.task} {member.pid} did not leave within {_LEAVE_SECONDS:g} s")

    def _fork(self, task: str, route: Route) -> None:
        self.starts += 1
        log = self._folder / f"{task}-{route.name}.log"
        pid = route.zygote.fork(task, route.program, log, route.namespace)
        self.members.append(Member(pid, task, route, time.monotonic()))

    def _ended(self, pid: int, code: int) -> None:
        member = next(member for member in self.members if member.pid == pid)
        self.members.remove(member)
        member.state = "ended"
        failed = code not in (0, -signal.SIGKILL)
        if failed:
            self.unexpected.append(f"{member.task} {pid} ({member.route.name}) ended with code {code}")
        self._failures_in_row = self._failures_in_row + 1 if failed else 0
        if self._failures_in_row > _MOST_FAILURES:
            raise FleetFailed(
                f"{_MOST_FAILURES} processes in a row have failed; their logs are in {self._folder}"
            )
        if member.task == "enqueuer" and code == 0 and not self._closing:
            self.enqueuer_done = True
        elif not self._closing:
            # One that cannot reach its ledger as it starts ends; like any supervisor we try again, but not at once.
            self._due.append((time.monotonic() + (_LATER if failed else 0.0), member.task))
