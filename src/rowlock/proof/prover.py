"""The prover: one run, from an empty ledger to a verdict."""

from __future__ import annotations

import platform
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from rowlock.clock import monotonic
from rowlock.errors import ConfigurationError, RowlockError
from rowlock.proof.arena import Arena
from rowlock.proof.checker import check
from rowlock.proof.facts import Facts
from rowlock.proof.fleet import Fleet
from rowlock.proof.journal import Journal
from rowlock.proof.lookout import Lookout
from rowlock.proof.nemeses import NEMESES
from rowlock.proof.nemesis import Ground
from rowlock.proof.position import Position
from rowlock.proof.report import Report
from rowlock.proof.routes import Routes, no_namespaces
from rowlock.proof.schedule import Schedule, draw

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rowlock.proof.workload import Program

_LOOK_SECONDS = 0.1
_MOMENT_SECONDS = 0.5
_DRY = 30
# Nothing has been settled for so long: the run gives up, and what is left counts as lost.
_STUCK_SECONDS = 90.0
_RECORDS_A_KILL = 800


class ProofFailed(RowlockError):
    """The run itself could not be carried through; it says nothing about the promises. See the logs in its folder."""


@dataclass(frozen=True)
class Plan:
    """What to run."""

    records: int = 10_000
    workers: int = 4
    seed: int = 1
    seconds: float = 0.0
    kills: int | None = None
    lease: float = 2.0
    faults: tuple[str, ...] | None = None  # None: every one that is available
    ledger_url: str | None = None
    own_server: bool = False

    @property
    def wanted_kills(self) -> int:
        return self.kills if self.kills is not None else max(10, self.records // _RECORDS_A_KILL)


class Prover:
    """`tell` gets a sentence for each thing that happens, `show` how far it is: (settled, of so many, faults)."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        tell: Callable[[str], None] = lambda _text: None,
        show: Callable[[int, int, int], None] = lambda _settled, _records, _faults: None,
    ) -> None:
        self.plan = plan
        self.folder = folder
        self._tell = tell
        self._show = show
        self._settled = 0
        self._redriven = 0

    def run(self) -> Report:
        plan = self.plan
        check_names(plan.faults)
        with ExitStack() as stack:
            arena = stack.enter_context(
                Arena(self.folder, ledger_url=plan.ledger_url, own_server=plan.own_server, lease=plan.lease)
            )
            faults, skipped = choose(plan.faults, arena)
            for name, reason in skipped.items():
                self._tell(f"without {name}: {reason}")
            program = arena.program(plan.seed, plan.records)
            journal = Journal(self.folder / "journal.jsonl")
            stack.callback(journal.close)
            begun = monotonic()
            fleet = self._work(arena, program, journal, faults)
            seconds = monotonic() - begun
            self._tell("counting")
            facts = Facts(self.folder / "facts.db")
            stack.callback(facts.close)
            facts.gather(arena, journal, plan.seed, plan.records)
            totals = arena.ledger.run("totals")[0]
            return Report(
                plan=plan,
                faults=tuple(faults),
                skipped=skipped,
                seconds=seconds,
                findings=check(facts),
                journal=journal,
                starts=fleet.starts,
                unexpected=fleet.unexpected,
                redriven=self._redriven,
                stale_refused=int(totals.stale_refused),
                versions={
                    "rowlock": version("rowlock"), "python": platform.python_version(), **arena.versions(),
                    "system": f"{platform.system()} {platform.release()}",
                },
            )  # fmt: skip

    # -- the work ------------------------------------------------------------------------------------------

    def _work(self, arena: Arena, program: Program, journal: Journal, faults: list[str]) -> Fleet:
        plan = self.plan
        with Routes(arena, program, set(faults)) as routes:
            fleet = Fleet(self.folder, routes, plan.workers)
            lookout = Lookout(arena.ledger)
            ground = Ground(arena, routes, fleet, lookout, journal, random.Random(plan.seed))
            schedule = Schedule(
                ground, draw(plan.seed, faults, plan.wanted_kills), kills=plan.wanted_kills,
                done=lambda: self._settled / plan.records, seconds=plan.seconds,
            )  # fmt: skip
            self._tell(
                f"{plan.workers} workers, {plan.records:,} records, faults: {', '.join(faults) or 'none'}"
            )
            fleet.start()
            schedule.start()
            try:
                self._watch(fleet, lookout, journal, schedule)
            finally:
                schedule.stop()
            self._tell("everything is settled; the workers leave")
            fleet.leave()
            if schedule.failure is not None:
                raise ProofFailed(f"a nemesis failed: {schedule.failure!r}") from schedule.failure
            return fleet

    def _watch(self, fleet: Fleet, lookout: Lookout, journal: Journal, schedule: Schedule) -> None:
        """Keeps everybody running until nothing is left to do, or nothing moves any more."""
        allowed, enqueued = Position(self.folder, "allowed"), Position(self.folder, "enqueued")
        moved, next_moment, last, live = monotonic(), 0.0, -1, 0
        while True:
            fleet.tend()
            may = int(self.plan.records * schedule.allowed())
            if live < _DRY and schedule.behind:  # the faults wait for work: a little more of it
                may = max(may, enqueued.read() + max(_DRY, self.plan.records // 200))
            allowed.write(may)
            if monotonic() >= next_moment:
                next_moment = monotonic() + _MOMENT_SECONDS
                self._redriven += lookout.redrive_the_doomed()
                self._settled, live = lookout.settled(), lookout.live()
                journal.moment(self._settled, live)
                self._show(self._settled, self.plan.records, len(journal.faults))
                if self._settled != last:
                    last, moved = self._settled, monotonic()
                if fleet.enqueuer_done and live == 0 and not lookout.redrive_the_doomed():
                    return
                if monotonic() - moved > _STUCK_SECONDS:
                    self._tell(f"nothing has been settled for {_STUCK_SECONDS:g} s: giving up")
                    return
            time.sleep(_LOOK_SECONDS)


def check_names(faults: tuple[str, ...] | None) -> None:
    for name in faults or ():
        if name not in NEMESES:
            raise ConfigurationError(f"There is no fault {name!r}; there are: {', '.join(NEMESES)}.")


def choose(wanted: tuple[str, ...] | None, arena: Arena) -> tuple[list[str], dict[str, str]]:
    """The faults that can be had here, and why the others cannot. One that was asked for by name has to be there."""
    missing = {name: why for name, nemesis in NEMESES.items() if (why := nemesis.missing(arena)) is not None}
    if wanted is not None:
        for name in wanted:
            if name in missing:
                raise ConfigurationError(f"The fault {name!r} cannot be had here: {missing[name]}.")
        return [name for name in NEMESES if name in wanted], {}
    chosen = [name for name in NEMESES if name not in missing]
    if "partition" in chosen and (why := no_namespaces()):
        missing["partition by namespaces"] = why
    return chosen, missing


def random_seed() -> int:
    return random.SystemRandom().randrange(1, 1_000_000)
