"""What happens to processes: they are killed, stopped, asked to leave, and their clocks jump."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, ClassVar

from rowlock.clock import monotonic
from rowlock.proof.nemesis import Nemesis
from rowlock.proof.routes import find_faketime

if TYPE_CHECKING:
    from rowlock.proof.arena import Arena
    from rowlock.proof.fleet import Member
    from rowlock.proof.journal import Fault
    from rowlock.proof.lookout import View

_PATIENCE = 4.0
_LOOK_AGAIN = 0.02
# Somebody has to be there to take over.
_LEAST_RUNNING = 3
# Of so many stops one is shorter than the lease; the others are not.
_SHORT_STOP = 4
# One strike of so many hits the enqueuer.
_ENQUEUER = 15


class Kill(Nemesis):
    """SIGKILL, in the middle of the work.

    The victim is stopped first, so that what the ledger says it holds is what it held when it died. One whose
    handlers have not started is let go again: to kill an idle process proves little.
    """

    name: ClassVar[str] = "kill"
    share: ClassVar[float] = 1.0

    def strike(self) -> bool:
        ground = self.ground
        enqueuer = ground.fleet.enqueuer()
        if enqueuer and ground.random.randrange(_ENQUEUER) == 0 and enqueuer.signal(signal.SIGKILL):
            self.note("enqueuer", enqueuer)
        give_up = monotonic() + _PATIENCE
        while monotonic() < give_up:
            with ground.fleet.lock:
                ground.fleet.tend()
                busy = ground.lookout.at_work()
                victims = [member for member in ground.fleet.workers() if member.pid in busy]
                if victims and self._kill(ground.random.choice(victims)):
                    return True
            time.sleep(_LOOK_AGAIN)
        return False

    def _kill(self, member: Member) -> bool:
        if not member.signal(signal.SIGSTOP):
            return False
        view = self.ground.lookout.view(member.pid)
        if not view.started:
            member.signal(signal.SIGCONT)
            return False
        member.signal(signal.SIGKILL)
        member.state = "ended"
        self.note("worker", member, view)
        return True


class Stop(Nemesis):
    """SIGSTOP: for a moment; or beyond the lease, until others work on what it held. Then it wakes as a zombie."""

    name: ClassVar[str] = "stop"
    share: ClassVar[float] = 0.35
    _strikes = 0

    def strike(self) -> bool:
        ground = self.ground
        with ground.fleet.lock:
            running = ground.fleet.workers()
            busy = ground.lookout.at_work()
            victims = [member for member in running if member.pid in busy]
            if len(running) < _LEAST_RUNNING or not victims:
                return False
            member = ground.random.choice(victims)
            if not member.signal(signal.SIGSTOP):
                return False
            view = ground.lookout.view(member.pid)
            if not view.holdings or not ground.lookout.writable():
                member.signal(signal.SIGCONT)
                return False
            member.state = "stopped"
        self._strikes += 1
        if self._strikes % _SHORT_STOP == 0:
            fault = self.note("short", member, view)
            ground.later(ground.random.uniform(0.1, 0.6) * ground.lease, lambda: self._wake(member, fault))
        else:
            fault = self.note("long", member, view)
            ends = monotonic() + ground.random.uniform(2.2, 3.0) * ground.lease
            ground.later(ground.lease, lambda: self._wake_when_retaken(member, fault, view, ends))
        return True

    def _wake_when_retaken(self, member: Member, fault: Fault, view: View, ends: float) -> float | None:
        """The worst moment to wake is when somebody else is at work on the same record."""
        if monotonic() < ends and not self.ground.lookout.retaken(view.holdings):
            return _LOOK_AGAIN
        self._wake(member, fault)
        return None

    def _wake(self, member: Member, fault: Fault) -> None:
        fault.lasted = self.ground.journal.second - fault.second
        member.signal(signal.SIGCONT)
        if member.state == "stopped":
            member.state = "running"


class Term(Nemesis):
    """SIGTERM: what runs is finished, the rest handed back."""

    name: ClassVar[str] = "term"
    share: ClassVar[float] = 0.1

    def strike(self) -> bool:
        ground = self.ground
        with ground.fleet.lock:
            victims = ground.fleet.workers()
            if not victims:
                return False
            member = ground.random.choice(victims)
            view = ground.lookout.view(member.pid)
            if not member.signal(signal.SIGTERM):
                return False
            member.state = "leaving"
            self.note("worker", member, view)
        return True


class Clock(Nemesis):
    """The wall clock of some workers jumps, by minutes or by years. It must change nothing."""

    name: ClassVar[str] = "clock"
    share: ClassVar[float] = 0.1
    _JUMPS: ClassVar[tuple[str, ...]] = ("+61s", "-61s", "+2h", "-2h", "+3d", "-3d", "+5y", "-5y", "+0")

    @classmethod
    def missing(cls, arena: Arena) -> str | None:
        if arena.dialect == "sqlite":
            return "a SQLite ledger lives on one machine, whose clock is the ledger's"
        return None if find_faketime() else "libfaketime is not installed (Debian: faketime)"

    def strike(self) -> bool:
        file = self.ground.routes.clock_file
        assert file is not None  # noqa: S101 - it is there when this fault was chosen
        jump = self.ground.random.choice(self._JUMPS)
        file.write_text(jump)
        self.note(jump)
        return True
