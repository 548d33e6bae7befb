"""Commit boundaries: where a process can die so that it makes a difference. One of them kills it.

Used only in the forked child of a test, so that what is wrapped here needs no unwrapping.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from rowlock import crashes
from rowlock.queue.executor import Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rowlock.app import Rowlock

_PUMP = "rowlock-pump"
# What these commit comes and goes with time: heartbeats, maintenance, the test's own look at the ledger.
_NOT_THE_HANDLERS = {
    "MainThread", _PUMP, "rowlock-heartbeat", "rowlock-maintenance", "rowlock-listener", "rowlock-watchdog",
    "rowlock-deadlines",
}  # fmt: skip
_WITH_COMPLETION = "record.transaction(), which carries the completion"
_LONGEST = 70


class Boundaries:
    """Writes every boundary that the handler's process reaches to a file, and kills the process at one of them."""

    def __init__(self, trace: int, kill_at: int | None) -> None:
        self._trace = trace
        self._kill_at = kill_at
        self._count = 0
        self._lock = threading.Lock()
        self._here = threading.local()

    def reach(self, where: str) -> None:
        with self._lock:
            os.write(self._trace, f"{' '.join(where.split())}\n".encode())
            if self._count == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            self._count += 1

    @contextmanager
    def around(self, what: str) -> Iterator[None]:
        self.reach(f"before {what}")
        self._here.inside = True  # one commit may pass through several of the wrappers below
        try:
            yield
        finally:
            self._here.inside = False
        self.reach(f"after {what}")

    # -- what the wrappers ask and tell ------------------------------------------------------------------------

    def commit(self, *, really: bool = True) -> AbstractContextManager[None]:
        """Around a COMMIT in the handler; nothing around any other."""
        if not really or self._is_not_the_handlers():
            return nullcontext()
        last, self._here.last = getattr(self._here, "last", None), None
        return self.around(f"the COMMIT of {last or 'a transaction'}")

    def statement(self, sql: str, *, commits_itself: bool) -> AbstractContextManager[None]:
        """Around any statement: notes what it writes, and is a boundary if it commits by itself."""
        verb = first_word(sql)
        if verb in ("COMMIT", "END"):
            return self.commit()
        if not is_write(verb, sql):
            return nullcontext()
        if commits_itself and not self._is_not_the_handlers():
            return self.around(f"{shortened(sql)}, which commits by itself")
        self._here.last = shortened(sql)
        return nullcontext()

    def completes(self) -> None:
        """What this thread commits next carries the record's completion."""
        self._here.last = _WITH_COMPLETION

    def _is_not_the_handlers(self) -> bool:
        if getattr(self._here, "inside", False):
            return True
        thread = threading.current_thread()
        return thread.name in _NOT_THE_HANDLERS and not isinstance(thread, Slot)


def first_word(sql: str) -> str:
    """The verb, behind any comments."""
    lines = (line.strip() for line in sql.splitlines())
    words = " ".join(line for line in lines if not line.startswith("--")).split(maxsplit=1)
    return words[0].upper().rstrip(";") if words else ""


def is_write(verb: str, sql: str) -> bool:
    if verb == "WITH":
        return any(word in sql.upper() for word in ("INSERT", "UPDATE", "DELETE", "MERGE"))
    return verb in ("INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "COPY")


def shortened(sql: str) -> str:
    text = " ".join(line.strip() for line in sql.splitlines() if not line.strip().startswith("--"))
    text = " ".join(text.split())
    return f"“{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}”"


# -- what is wrapped -----------------------------------------------------------------------------------------------


def watch(app: Rowlock, boundaries: Boundaries) -> None:
    """From now on, every commit of this process's handlers and of its records is a boundary."""
    from rowlock.integrations.pytest import drivers  # noqa: PLC0415 - it imports this module

    crashes.listen(lambda name: boundaries.reach(f'at crash_point("{name}")'))
    drivers.watch_sqlalchemy(boundaries)
    drivers.watch_sqlite(boundaries)
    drivers.watch_psycopg(boundaries)
    _watch_ledger(type(app.ledger), boundaries)
    for name, flow in app.flows.items():
        # In a process of its own the handler would be out of sight; a thread of this one is killed just as dead.
        executor = "thread" if flow.executor == "process" else flow.executor
        app.flows[name] = replace(flow, handler=_announced(flow.handler, boundaries), executor=executor)


def _announced(handler: Callable[[Any], Any], boundaries: Boundaries) -> Callable[[Any], Any]:
    where = "as the handler starts"
    if inspect.iscoroutinefunction(handler):

        @wraps(handler)
        async def astarts(records: Any) -> Any:
            boundaries.reach(where)
            return await handler(records)

        return astarts

    @wraps(handler)
    def starts(records: Any) -> Any:
        boundaries.reach(where)
        return handler(records)

    return starts


def _watch_ledger(ledger: Any, boundaries: Boundaries) -> None:
    """What the worker's pump settles after the handler returned; and the completion inside a record's transaction."""
    exchange, fail, release, complete = ledger.exchange, ledger.fail, ledger.release, ledger.complete

    def settling(what: str, rows: Any) -> AbstractContextManager[None]:
        ours = rows and threading.current_thread().name == _PUMP
        return boundaries.around(what) if ours else nullcontext()

    def watched_exchange(self: Any, holder: int, completions: Any, wishes: Any) -> Any:
        with settling("the completion", completions):
            return exchange(self, holder, completions, wishes)

    def watched_fail(self: Any, holder: int, failures: Any) -> Any:
        with settling("the settling of a failed attempt", failures):
            return fail(self, holder, failures)

    def watched_release(self: Any, holder: int, releases: Any) -> Any:
        with settling("the hand-back", releases):
            return release(self, holder, releases)

    def watched_complete(self: Any, on: Any, **of: Any) -> Any:
        done = complete(self, on, **of)
        boundaries.completes()
        return done

    ledger.exchange, ledger.fail = watched_exchange, watched_fail
    ledger.release, ledger.complete = watched_release, watched_complete
