"""The schedule: which nemesis strikes next. It is drawn from the seed before the run begins.

It keeps step with the work, and the work with it, so that no fault comes when everything is over.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import deque
from typing import TYPE_CHECKING

from rowlock.clock import monotonic
from rowlock.proof.nemeses import NEMESES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlock.proof.nemesis import Ground, Nemesis

logger = logging.getLogger("rowlock.proof")

_TICK = 0.02
# Without any progress in the work the next strike comes after so many seconds all the same.
_LONGEST_WAIT = 2.0
# The work may be this much of the whole ahead of the faults, and as much is kept for those that come late.
_LEAD = 0.08
_MOST = 1 - 2 * _LEAD
_LATER = 5


def draw(seed: int, faults: Iterable[str], kills: int) -> list[str]:
    """The names of the nemeses, in the order in which they strike."""
    names = [name for name in NEMESES if name in set(faults)]
    strikes = [name for name in names for _ in range(max(2, round(kills * NEMESES[name].share)))]
    random.Random(seed).shuffle(strikes)
    return strikes


class Schedule:
    """Strikes in a thread of its own until all strikes are done, and as many kills hit as were wished for."""

    def __init__(
        self, ground: Ground, strikes: list[str], *, kills: int, done: Callable[[], float], seconds: float
    ) -> None:
        self._ground = ground
        self._strikes = strikes
        self._kills = kills if "kill" in strikes else 0
        self._done = done
        self._seconds = seconds
        self._nemeses: dict[str, Nemesis] = {name: NEMESES[name](ground) for name in set(strikes)}
        self._struck = self._struck_in_vain = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proof-nemesis", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more strikes; what lasts ends."""
        self._stopping.set()
        self._thread.join()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def allowed(self) -> float:
        """How much of the work may have been begun: the faults and the clock keep it back."""
        return 1.0 if self.over else min(self._share(), self._elapsed()) * _MOST + _LEAD

    @property
    def behind(self) -> bool:
        """True while it is the faults that the work waits for, and not the clock."""
        return self._share() < self._elapsed()

    def _share(self) -> float:
        return self._struck / len(self._strikes) if self._strikes else 1.0

    def _elapsed(self) -> float:
        return min(1.0, self._ground.journal.second / self._seconds) if self._seconds else 1.0

    def _run(self) -> None:
        try:
            left = deque(self._strikes)
            while left and not self._stopping.is_set():
                self._wait()
                name = left.popleft()
                if self._strike(name) or self._struck_in_vain >= len(self._strikes):
                    self._struck += 1
                else:  # nobody to strike just now: a few strikes later
                    self._struck_in_vain += 1
                    left.insert(min(len(left), _LATER), name)
            while not self._stopping.is_set() and self._ground.journal.kills_mid_flight < self._kills:
                self._strike("kill")
            while not self._stopping.is_set() and self._elapsed() < 1.0:
                self._pause()
        except BaseException as error:
            logger.exception("the nemesis fails")
            self.failure = error
        finally:
            self._ground.end_everything()

    def _wait(self) -> None:
        """Until as much of the work is done as of the schedule."""
        share = self._share()
        give_up = monotonic() + _LONGEST_WAIT
        self._pause()
        while not self._stopping.is_set() and self._elapsed() < share:
            self._pause()
        while not self._stopping.is_set() and monotonic() < give_up and self._done() < share * _MOST:
            self._pause()

    def _strike(self, name: str) -> bool:
        self._ground.do_what_is_due()
        return self._stopping.is_set() or self._nemeses[name].strike()

    def _pause(self) -> None:
        self._ground.do_what_is_due()
        self._stopping.wait(_TICK)
