"""Maintenance: records whose time has come, instances that died, history that is old enough.

Every instance does the first two, so that nobody waits for a leader that died as well; one elected instance
prunes. All of it is safe to do twice.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.errors import LedgerError
from rowlock.leases.elected import Elected

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.instance import Instance
    from rowlock.ledger.ledger import Ledger
    from rowlock.queue.breakers import Breakers

logger = logging.getLogger("rowlock.maintenance")

BATCH = 1000
_PRUNE_SECONDS = 60.0
_SOONEST = 0.01


class Maintenance:
    def __init__(
        self, ledger: Ledger, instance: Instance, wake: Callable[[], None], breakers: Breakers | None = None
    ) -> None:
        self._ledger = ledger
        self._instance = instance
        self._wake = wake
        self._breakers = breakers
        self._settings = ledger.settings
        self._pruner = Elected(instance, ledger, "rowlock.pruner", _PRUNE_SECONDS)
        self._next_prune = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rowlock-maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                pause = self.tick()
            except LedgerError as error:
                logger.warning("maintenance waits for the ledger: %s", error)
                pause = self._settings.poll_seconds

    def tick(self) -> float:
        """Does what is due; returns for how long nothing will be."""
        row = self._ledger.run_safely("tick")[0]
        waits = [self._settings.poll_seconds]
        if self._breakers is not None:
            waits.append(self._breakers.tick())
        if row.next_due is not None:
            if row.next_due <= 0:
                self.promote()
                return _SOONEST
            waits.append(row.next_due)
        if row.orphans or (row.next_expiry is not None and row.next_expiry <= 0):
            self.take_over()
        elif row.next_expiry is not None:
            waits.append(row.next_expiry)
        if clock.monotonic() >= self._next_prune:
            self.prune()
        return max(_SOONEST, min(waits))

    def promote(self) -> None:
        while (count := self._ledger.promote(BATCH)) == BATCH and not self._stopping.is_set():
            self._wake()
        if count:
            self._wake()

    def take_over(self) -> int:
        """Declares silent instances dead and returns what they held; how many records that were."""
        return take_over(self._ledger, self._instance, self._wake)

    def prune(self) -> None:
        self._next_prune = clock.monotonic() + _PRUNE_SECONDS
        if not self._pruner.here:
            return
        seconds = self._settings.retention_days * 86400
        while self._pruner.here and not self._stopping.is_set():
            count = self._ledger.prune(seconds, dead_too=False, limit=self._settings.prune_batch)
            if count < self._settings.prune_batch:
                break
        self._ledger.run("prune_jobs", seconds=seconds)
        self._ledger.run("prune_instances", seconds=seconds)
        self._ledger.run("prune_holdings", seconds=seconds)


def take_over(ledger: Ledger, instance: Instance, wake: Callable[[], None]) -> int:
    """Declares silent instances dead and returns what they held; how many records that were."""
    for row in ledger.run_safely("bury_instances"):
        logger.warning("instance %s is dead: it missed its heartbeat", row.id)
    total = 0
    while True:
        returned, dead = ledger.takeover(BATCH)
        total += returned + dead
        if returned or dead:
            instance.counters.add(takeovers=returned + dead)
            logger.warning(
                "took over %d records of dead instances; %d of them were dead", returned + dead, dead
            )
            wake()
        if returned + dead < BATCH:
            return total
