"""The instance: this process as the ledger knows it, and the heartbeat that keeps what it holds.

One heartbeat covers every record the instance holds. It runs on a thread and a connection of its own, so that
neither a busy handler nor an empty pool can silence it. The local deadline is taken *before* a renewal is
sent and ends before the ledger's: when it passes, this process must assume that it holds nothing any more.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING

from rowlock import clock, log
from rowlock.errors import LedgerError
from rowlock.leases.keeper import Keeper
from rowlock.leases.lease import SAFETY_MARGIN
from rowlock.leases.tally import Tally
from rowlock.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.settings import Settings

logger = logging.getLogger("rowlock.instance")


@dataclass
class Counters:
    """What this instance did; sent along with each heartbeat, so that a kill loses little."""

    completed: int = 0
    failed: int = 0
    stale_refused: int = 0
    takeovers: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, *, completed: int = 0, failed: int = 0, stale_refused: int = 0, takeovers: int = 0) -> None:
        with self._lock:
            self.completed += completed
            self.failed += failed
            self.stale_refused += stale_refused
            self.takeovers += takeovers

    def read(self) -> dict[str, int]:
        with self._lock:
            return {
                "completed": self.completed,
                "failed": self.failed,
                "stale_refused": self.stale_refused,
                "takeovers": self.takeovers,
            }

    def forget(self, written: dict[str, int]) -> None:
        """Begins anew after these were written; what was counted meanwhile is kept."""
        self.add(**{name: -count for name, count in written.items()})


class Instance:
    """Registered, alive, and replaced by a new incarnation when its lease was lost."""

    def __init__(
        self,
        settings: Settings,
        *,
        name: str | None = None,
        roles: str = "program",
    ) -> None:
        self.settings = settings
        self.hostname = socket.gethostname()
        self.pid = os.getpid()
        self.name = name or f"{self.hostname}:{self.pid}"
        self.roles = roles
        self.counters = Counters()
        self.tally = Tally()
        self.id: int = 0
        self._deadline = 0.0
        self._ledger_ahead = 0.0
        self._on_lost: list[Callable[[str], None]] = []
        self._on_drain: list[Callable[[], None]] = []
        self._forfeited = threading.Event()
        self._wake = threading.Event()
        self._beating = threading.Lock()
        self._stopping = threading.Event()
        self._next_beat = 0.0
        self._ledger = Ledger.open(settings.model_copy(update={"pool_size": 1}), control=True)
        self.keeper = Keeper(self._ledger, lambda: self.id, self._wake.set, self.tally)
        self._thread = threading.Thread(target=self._beat_for_ever, name="rowlock-heartbeat", daemon=True)

    # -- what others ask ---------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        """How long this process may still act on what it holds, by its own monotonic clock."""
        return max(0.0, self._deadline - clock.monotonic())

    @property
    def alive(self) -> bool:
        return not self._forfeited.is_set() and clock.monotonic() < self._deadline

    @property
    def ledger_time(self) -> float:
        """About what the ledger's clock says now; for measuring, not for deciding."""
        return clock.monotonic() + self._ledger_ahead

    @property
    def beating(self) -> bool:
        """True while the heartbeat's thread goes on, whether or not the ledger hears it."""
        return self._thread.is_alive()

    def on_lost(self, tell: Callable[[str], None]) -> None:
        """Calls this, with the reason, whenever everything that this incarnation held is lost."""
        self._on_lost.append(tell)

    def on_drain(self, tell: Callable[[], None]) -> None:
        """Calls this with every heartbeat while the instance is asked to finish and leave."""
        self._on_drain.append(tell)

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        self._register()
        self._thread.start()

    def announce(self, roles: str) -> None:
        """Tells the ledger what this instance does from now on."""
        self.roles = roles
        self._ledger.run_safely("instance_roles", id=self.id, roles=roles)

    def stop(self, reason: str = "stopped") -> None:
        """Leaves the registry. What it still holds becomes claimable at once."""
        self.keeper.close()
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self.settings.heartbeat_seconds)
        try:
            self.tally.write(self._ledger)
            self._ledger.run_safely(
                "instance_end", id=self.id, state="stopped", reason=reason, **self.counters.read()
            )
        except LedgerError as error:
            logger.warning("instance %s could not say goodbye (%s); its lease will run out", self.id, error)
        self._ledger.close()
        log.instance_is(self, None)

    def forfeit(self, reason: str) -> None:
        """Gives up everything held, because the deadline passed or the ledger said so. Idempotent."""
        if not self._forfeited.is_set():
            self._forfeited.set()
            self.tally.add("leases_lost", "instance")
            logger.error("instance %s lost its lease: %s", self.id, reason)
            for tell in self._on_lost:
                tell(reason)
            self._wake.set()

    def beat(self) -> None:
        """One heartbeat, now. Raises LedgerError when the ledger cannot be reached."""
        with self._beating:
            self._beat()

    def _beat(self) -> None:
        if self._forfeited.is_set():
            self._replace()
            return
        sent = clock.monotonic()
        rows = self._ledger.run("instance_beat", id=self.id, **self.counters.read())
        if not rows:
            self.forfeit("the ledger had declared it dead")
            self._replace()
            return
        self._extend(sent)
        self._look_at_clock(sent, rows[0].now)
        if rows[0].state == "draining":
            for tell in self._on_drain:
                tell()

    def _beat_for_ever(self) -> None:
        self._next_beat = clock.monotonic() + self.settings.heartbeat_seconds
        while True:
            due = min(self._next_beat, self.keeper.next_renewal())
            self._wake.wait(max(0.0, due - clock.monotonic()))
            self._wake.clear()
            if self._stopping.is_set():
                return
            if self._forfeited.is_set() or clock.monotonic() >= self._next_beat:
                self._try_to_beat()
            self.keeper.renew()

    def _try_to_beat(self) -> None:
        sent = clock.monotonic()
        try:
            self.beat()
            self._next_beat = sent + self.settings.heartbeat_seconds
        except LedgerError as error:
            self.tally.add("lease_renewals", "failed")
            logger.warning(
                "instance %s: heartbeat failed, %.1f s left: %s", self.id, self.seconds_left, error
            )
            self._next_beat = clock.monotonic() + self.settings.heartbeat_seconds / 4
        else:
            self.tally.add("lease_renewals", "renewed")
            self._tell_tally()

    def _tell_tally(self) -> None:
        try:
            self.tally.write(self._ledger)
        except LedgerError as error:
            logger.warning("instance %s could not add what it counted, and tries again: %s", self.id, error)

    def _register(self) -> None:
        sent = clock.monotonic()
        rows = self._ledger.run(
            "instance_register",
            name=self.name,
            hostname=self.hostname,
            pid=self.pid,
            version=version("rowlock"),
            roles=self.roles,
            lease=self.settings.lease_seconds,
        )
        self.id = rows[0].id
        log.instance_is(self, self.id)
        self._extend(sent)
        self._look_at_clock(sent, rows[0].now)
        self._forfeited.clear()

    def _replace(self) -> None:
        """Ends this incarnation, so that what it held is claimable at once, and begins another."""
        old, counted = self.id, self.counters.read()
        self._ledger.run_safely(
            "instance_end", id=old, state="dead", reason="could not renew in time", **counted
        )
        self.counters.forget(counted)
        self._register()
        logger.warning("instance %s goes on as instance %s", old, self.id)

    def _look_at_clock(self, sent: float, now: float) -> None:
        """The ledger looked at its clock about halfway between question and answer."""
        self._ledger_ahead = now - (sent + clock.monotonic()) / 2

    def _extend(self, sent: float) -> None:
        self._deadline = sent + self.settings.lease_seconds * (1 - SAFETY_MARGIN)
