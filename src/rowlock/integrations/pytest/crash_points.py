"""Kills a handler at every commit boundary, lets another worker take over, and asks whether its effects happened once."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import traceback
import warnings
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Engine
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from rowlock.integrations.pytest.boundaries import Boundaries, watch
from rowlock.integrations.pytest.running import work_until_idle
from rowlock.queue.inspector import Inspector

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rowlock.app import Rowlock
    from rowlock.integrations.pytest.throw_away import ThrowAwayLedger
    from rowlock.queue.enqueue import Key

_UNSAID: Any = object()
_A_MOMENT = 1.0
_LONGEST = 300


class EffectsNotOnce(AssertionError):
    """A handler's effects happened twice, or not at all, when it was killed at one of its commit boundaries."""


@dataclass(frozen=True)
class Crash:
    """One run: where it was killed, what the effects were in the end, and what became of the records."""

    where: str
    effects: Any
    fates: list[str]

    def against(self, expected: Any) -> str:
        counts = [len(one) for one in (self.effects, expected) if isinstance(one, list | tuple | set | dict)]
        if self.effects == expected:
            told = "the effects are right, and a record did not complete"
        elif len(counts) == 2 and counts[0] != counts[1]:
            told = f"{counts[0]} effects, expected {counts[1]}"
        else:
            told = "other effects than expected"
        lines = [f"killed {self.where}: {told}", f"    effects:  {_short(self.effects)}"]
        lines += [f"    expected: {_short(expected)}"]
        lines += [f"    records:  {', '.join(self.fates)}"] if self.fates else []
        return "\n".join(lines)


class CrashPoints:
    """Bound to a test's throw-away ledger; every run begins on an empty one."""

    def __init__(self, ledger: ThrowAwayLedger, folder: Path) -> None:
        self._ledger = ledger
        self._trace = folder / "rowlock-crash-trace"

    def __call__(
        self,
        app: Rowlock,
        flow: str,
        payload: Any,
        *,
        effects: Callable[[Rowlock], Any],
        setup: Callable[[Rowlock], object] = lambda _app: None,
        expect: Any = _UNSAID,
        key: Key = None,
        timeout: float = 60,
    ) -> list[Crash]:
        """Raises EffectsNotOnce, with every boundary that broke it in words; returns the crashes that it survived.

        Args:
            app: an app that `rowlock_app` has pointed at the throw-away ledger.
            flow: the flow whose handler is killed.
            payload: what is enqueued for each run; one payload, or a list of them.
            effects: `effects(app)` reads what the handler did, as something that compares with ==.
            setup: `setup(app)` is called before each run, on an empty database: create your tables here.
            expect: what `effects` must return; if it is not given, what it returns after a run that nobody killed.
            key: as for `app.enqueue`; if it is not given, the keys are crash-1, crash-2, …, in every run.
            timeout: seconds that one worker may take.

        """
        __tracebackhide__ = True  # the words below say it all
        self._ledger.check(app)
        run = _Run(
            ledger=self._ledger,
            trace=self._trace,
            app=app,
            flow=flow,
            payload=payload,
            key=key,
            setup=setup,
            timeout=timeout,
        )
        run.begin()
        reached = run.work(kill_at=None)
        fates = _fates(app, flow)
        found = effects(app)
        if fates or (expect is not _UNSAID and found != expect):
            wanted = found if expect is _UNSAID else expect
            raise EffectsNotOnce(
                f"flow {flow!r}, even though it was " + Crash("by nobody", found, fates).against(wanted)
            )
        survived: list[Crash] = []
        broken: list[Crash] = []
        for at in range(len(reached)):
            run.begin()
            here = run.work(kill_at=at)
            if len(here) <= at:
                continue  # it did less this time, and was done before anybody could kill it
            run.take_over()
            crash = Crash(_in_words([*here, *reached[at + 1 :]], at), effects(app), _fates(app, flow))
            (survived if crash.effects == found and not crash.fates else broken).append(crash)
        if broken:
            raise EffectsNotOnce(_report(flow, broken, len(reached), found))
        return survived


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One try on an empty ledger, in processes of its own."""

    ledger: ThrowAwayLedger
    trace: Path
    app: Rowlock
    flow: str
    payload: Any
    key: Key
    setup: Callable[[Rowlock], object]
    timeout: float

    def begin(self) -> None:
        self._let_go()
        self.ledger.begin_anew()
        self.setup(self.app)
        numbers = count(1)
        # The same in every run: whoever compares effects compares keys.
        key = (lambda _payload: f"crash-{next(numbers)}") if self.key is None else self.key
        self.app.enqueue(self.flow, self.payload, key=key)

    def work(self, kill_at: int | None) -> list[str]:
        """A worker in a process of its own, killed at that boundary; the boundaries it reached."""
        self.trace.write_bytes(b"")
        code, told = self._fork(lambda trace: watch(self.app, Boundaries(trace, kill_at)))
        if code != 0 and not (code == -signal.SIGKILL and kill_at is not None):
            raise RuntimeError(f"The worker's process ended with {code}, and nobody had killed it.\n{told}")
        return self.trace.read_text(encoding="utf-8").splitlines()

    def take_over(self) -> None:
        """The killed worker's lease runs out, and another one finishes what there is."""
        # The killed worker may have moved a clock of its own: what counts is the lease that it left in the ledger.
        lease = self.ledger.ledger.run("tick")[0].next_expiry or 0.0
        self.ledger.clock.advance(max(0.0, lease) + _A_MOMENT)
        code, told = self._fork(lambda _trace: None)
        if code != 0:
            raise RuntimeError(f"The second worker's process ended with {code}.\n{told}")

    def _fork(self, prepare: Callable[[int], None]) -> tuple[int, str]:
        self._let_go()
        ours, theirs = os.pipe()
        child = multiprocessing.get_context("fork").Process(target=self._child, args=(prepare, theirs))
        with warnings.catch_warnings():
            # A fork beside other threads is risky for what they lock. The child uses nothing of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        os.close(theirs)
        try:
            with os.fdopen(ours, encoding="utf-8") as told:
                child.join(self.timeout + 10)
                if child.is_alive():
                    child.kill()
                    child.join()
                return child.exitcode or 0, told.read()
        finally:
            child.close()

    def _child(self, prepare: Callable[[int], None], tell: int) -> None:
        """Never returns: what the test's process would do at its end is not the child's to do."""
        code = 1
        try:
            for engine in _engines():
                engine.dispose(close=False)  # those connections are the parent's
            trace = os.open(self.trace, os.O_WRONLY | os.O_APPEND)
            prepare(trace)
            work_until_idle(self.app, [self.flow], advance_clock=True, concurrency=1, timeout=self.timeout)
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent, whatever it is
            os.write(tell, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(code)

    def _let_go(self) -> None:
        """Nothing open may cross a fork: one connection in two processes is garbage on the wire."""
        self.app.close()
        self.ledger.ledger.close()
        for engine in _engines():
            engine.dispose()


def _engines() -> list[Engine]:
    """Every engine of this process, but for databases in memory: those would be gone."""
    return [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, Engine) and not isinstance(thing.pool, StaticPool | SingletonThreadPool)
    ]


def _fates(app: Rowlock, flow: str) -> list[str]:
    """Records of the flow that did not complete, and why."""
    return [
        f"{record['flow']}/{record['key']} is {record['status']}"
        + (f": {record['reason']}" if record["reason"] else "")
        for record in Inspector(app.ledger).records(flow=flow, limit=100)
        if record["status"] != "completed"
    ]


def _in_words(reached: list[str], at: int) -> str:
    """After what, and before what: the two commits that the kill fell between."""
    here = reached[at]
    if here.startswith("before"):
        before = next((one for one in reversed(reached[:at]) if one.startswith("after")), None)
        return f"{before} and {here}" if before else here
    after = next((one for one in reached[at + 1 :] if one.startswith("before")), None)
    joined = " and" if here.startswith("after") else ","
    return f"{here}{joined} {after}" if after else here


def _report(flow: str, broken: list[Crash], kills: int, expected: Any) -> str:
    seen: dict[str, None] = dict.fromkeys(crash.against(expected) for crash in broken)
    head = (
        f"flow {flow!r}: of {kills} kills, {len(broken)} left effects that did not happen exactly once. Write the effect "
        "through record.transaction(), or make the other side recognise record.idempotency_key."
    )
    return "\n".join([head, *seen])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
