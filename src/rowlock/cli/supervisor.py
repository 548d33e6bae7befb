"""The supervisor: several worker processes, kept running, and stopped together.

One loop owns the children. Signals and deaths are only messages to it, so nothing happens in between: a signal
cannot miss a child that is just being started, nor reach one twice.
"""

import logging
import signal
import subprocess
import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from rowlock import clock
from rowlock.signals import on_signals

logger = logging.getLogger("rowlock.supervisor")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
# A child that lived for so long was well: the next death counts as the first.
_WELL_SECONDS = 60.0
# Where the end of the work is the goal, a child that cannot even start must not be tried for ever.
_TRIES_UNTIL_EMPTY = 5


class Child:
    """One place for a worker process, and whoever is in it now."""

    def __init__(self, number: int, command: Sequence[str]) -> None:
        self.number = number
        self.command = list(command)
        self.process: subprocess.Popen[bytes] | None = None
        self.sent: set[int] = set()
        self.deaths = 0
        self.restart_at: float | None = None
        self.failed = False
        self._started = 0.0

    def start(self, ended: "SimpleQueue[int | Child]") -> None:
        self.restart_at, self.failed, self.sent = None, False, set()
        self._started = clock.monotonic()
        # A session of its own: Ctrl-C at the terminal comes from us, once. Its stdin is a pipe that ends when
        # we do, however that happens, so that no child outlives its supervisor.
        process = subprocess.Popen(self.command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
        self.process = process

        def wait() -> None:
            process.wait()
            ended.put(self)

        threading.Thread(target=wait, name=f"rowlock-child-{self.number}", daemon=True).start()

    def signal(self, number: int) -> None:
        if self.process is not None:
            self.sent.add(number)
            self.process.send_signal(number)

    def bury(self) -> None:
        """Notes how it ended: well (0, or by a signal that we sent), or not."""
        process = self.process
        assert process is not None  # noqa: S101 - only a child that was started can end
        assert process.stdin is not None  # noqa: S101
        process.stdin.close()
        self.process = None
        code = process.returncode
        self.failed = code != 0 and -code not in self.sent
        if self.failed:
            lived = clock.monotonic() - self._started
            self.deaths = 1 if lived > _WELL_SECONDS else self.deaths + 1
            logger.error("worker %d (pid %d) ended: %s", self.number, process.pid, _how(code))
        else:
            logger.info("worker %d (pid %d) has left", self.number, process.pid)

    @property
    def pause(self) -> float:
        """How long to wait before it is started again: longer with each death."""
        return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self.deaths - 1, 16))


class Supervisor:
    """Keeps children running until a signal, or until each of them has ended by itself."""

    def __init__(self, commands: Sequence[Sequence[str]], *, until_empty: bool) -> None:
        self._children = [Child(number, command) for number, command in enumerate(commands, 1)]
        self._until_empty = until_empty
        self._inbox: SimpleQueue[int | Child] = SimpleQueue()
        self._stopping = False

    def run(self) -> bool:
        """True if every child ended well: by itself, or by a signal that it was sent."""
        with on_signals(self._inbox.put):
            for child in self._children:
                child.start(self._inbox)
            while any(child.process or child.restart_at is not None for child in self._children):
                self._turn()
        return not any(child.failed for child in self._children)

    def _turn(self) -> None:
        match self._next_message():
            case None:
                pass
            case Child() as child:
                child.bury()
                self._plan(child)
            case number:
                self._forward(number)
        for child in self._children:
            if child.restart_at is not None and child.restart_at <= clock.monotonic():
                child.start(self._inbox)

    def _next_message(self) -> int | Child | None:
        due = [child.restart_at for child in self._children if child.restart_at is not None]
        timeout = max(0.0, min(due) - clock.monotonic()) if due else None
        try:
            return self._inbox.get(timeout=timeout)
        except Empty:
            return None

    def _plan(self, child: Child) -> None:
        if not child.failed or self._stopping:
            return
        if self._until_empty and child.deaths >= _TRIES_UNTIL_EMPTY:
            logger.error("worker %d failed %d times in a row and is given up", child.number, child.deaths)
            return
        child.restart_at = clock.monotonic() + child.pause
        logger.warning("worker %d is started again in %.1f s", child.number, child.pause)

    def _forward(self, number: int) -> None:
        logger.info("%s goes to every worker", signal.Signals(number).name)
        self._stopping = True
        for child in self._children:
            child.restart_at = None
            child.signal(number)


def _how(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"
