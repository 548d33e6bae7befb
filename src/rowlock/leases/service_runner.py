"""Runs one service: stands in line for its lease, runs it while it is held, starts it again when it crashes."""

from __future__ import annotations

import logging
import random
import threading
import traceback
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from rowlock.errors import LeaseLost, LedgerError
from rowlock.leases.limit import Halt
from rowlock.leases.service import Service, ServiceRun, call, is_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.lease import Lease
    from rowlock.leases.limit import Limit
    from rowlock.leases.locks import Locks
    from rowlock.leases.service_loop import LoopTask, ServiceLoop

logger = logging.getLogger("rowlock.service")

_FIRST_PAUSE = 1.0
# After so many crashes in a row another instance may try: it may be this machine that is broken.
_HAND_OVER = 3


class ServiceRunner:
    """One thread for one service."""

    def __init__(self, service: Service, locks: Locks, loop: ServiceLoop) -> None:
        self.service = service
        self._locks = locks
        self._loop = loop
        self._stopping = threading.Event()
        self._bell = threading.Event()
        self._left = False  # nobody waits for the thread any more: it must not touch the ledger again
        self._run: ServiceRun | None = None
        self._task: LoopTask | None = None
        self._halt = Halt()
        self._crashes = 0
        self._thread = threading.Thread(
            target=self._serve_for_ever, name=f"rowlock-service-{service.name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Tells it; it ends when its function has come back."""
        self._stopping.set()
        self._bell.set()
        self._halt.set()
        run, task = self._run, self._task
        if run is not None:
            run.bell.set()
        if task is not None:
            task.cancel()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def leave(self) -> None:
        """A function that has not come back may still act: its lease is not given back, but left to run out."""
        run = self._run
        if self.running and run is not None:
            self._left = True
            self._locks.keeper.drop(run.lease)
            logger.error("service %r did not stop in time; its lease runs out by itself", self.service.name)

    # -- holding -----------------------------------------------------------------------------------------------

    def _serve_for_ever(self) -> None:
        while not self._stopping.is_set():
            try:
                wish = self._locks.wish(self.service.lock_name, ttl=self.service.ttl, wait=None)
                lease = self._locks.acquire(wish, bell=self._bell, stopping=self._stopping)
            except LedgerError as error:
                logger.warning("service %r waits for the ledger: %s", self.service.name, error)
                self._stopping.wait(_FIRST_PAUSE)
                continue
            if lease is not None:
                self._hold(lease)
                # Whoever gave it up because of crashes lets others go first.
                self._stopping.wait(self._pause() if self._crashes else 0)

    def _hold(self, lease: Lease) -> None:
        run = self._run = ServiceRun(self.service, lease.__enter__(), self._stopping)
        self._locks.instance.tally.add("leader_changes", "")
        logger.info("service %r runs here now (token %s)", self.service.name, lease.token)
        try:
            if self._attempt(run, self.service.on_start):
                self._repeat(run)
            if self.service.on_stop is not None:
                self._attempt(run, self.service.on_stop)
            if not self._crashes:  # the reason of a crash stays in sight until it runs again
                self._note("stopped", None)
        except LedgerError as error:
            logger.warning("service %r gives up its lease, without the ledger: %s", self.service.name, error)
        finally:
            self._run = None
            if not self._left:
                lease.__exit__(RuntimeError)  # a loss has been told, and is no error of ours
            logger.info("service %r does not run here any more", self.service.name)

    def _repeat(self, run: ServiceRun) -> None:
        """Runs it again and again, until it must stop or has crashed too often here."""
        while run.wait(self._due()):
            if not self._begin(run):
                run.lease.lose("the ledger had given it away")
                return
            if self._attempt(run, self.service.function):
                self._crashes = 0
                self._note("waiting", None if self.service.every else "it returned, and is started again")
                if self.service.every is None and not run.wait(_FIRST_PAUSE):
                    return
            elif self._crashes % _HAND_OVER == 0 or not run.wait(self._pause()):
                return

    def _due(self) -> float:
        """Seconds until the next run; another instance's rhythm goes on."""
        every = self.service.every
        if every is None:
            return 0.0
        rows = self._locks.keeper.ledger.run_safely("service_due", service=self.service.name, every=every)
        return min(every, max(0.0, rows[0].seconds)) if rows else 0.0

    def _begin(self, run: ServiceRun) -> bool:
        return bool(
            self._locks.keeper.ledger.run(
                "service_begin",
                service=self.service.name,
                name=self.service.lock_name,
                token=run.token,
                instance=self._locks.keeper.holder,
                every=self.service.every,
            )
        )

    def _note(self, state: str, reason: str | None, *, crashed: bool = False) -> None:
        if self._left:
            return
        run = self._run
        assert run is not None  # noqa: S101 - only a holder has something to say
        self._locks.keeper.ledger.run_safely(
            "service_end",
            service=self.service.name,
            token=run.token,
            state=state,
            reason=reason,
            crashed=int(crashed),
        )

    # -- running -----------------------------------------------------------------------------------------------

    def _attempt(self, run: ServiceRun, function: Callable[..., Any] | None) -> bool:
        """False if it crashed; whatever it raises after it was told to stop is its way of stopping."""
        if function is None:
            return True
        try:
            if function is self.service.function and self.service.limit is not None:
                self._call_within(self.service.limit, run)
            else:
                self._call(run, function)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - its reason is written down, and it is tried again
            if run.stopping:
                if not isinstance(error, CancelledError | LeaseLost):
                    logger.warning("service %r raised while it stopped: %r", self.service.name, error)
                return True
            self._crashed(error)
            return False
        return True

    def _call_within(self, limit: Limit, run: ServiceRun) -> None:
        """Nothing is called when the run had to end while it waited for the limit."""
        halt = self._halt = Halt()
        run.lease.on_lost(lambda _lease: halt.set())
        if run.stopping:
            return
        permit = limit.wait_for(halt)
        if permit is None:
            return
        try:
            if not run.stopping:
                self._call(run, self.service.function)
        finally:
            permit.end()

    def _call(self, run: ServiceRun, function: Callable[..., Any]) -> None:
        if not is_async(function):
            call(self.service, function, run)
            return
        task = self._task = self._loop.submit(call(self.service, function, run))
        run.lease.on_lost(lambda _lease: task.cancel())
        if run.stopping and function is not self.service.on_stop:
            task.cancel()
        try:
            task.result()
        finally:
            self._task = None

    def _crashed(self, error: BaseException) -> None:
        self._crashes += 1
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        next_ = "gives another instance a try" if self._crashes % _HAND_OVER == 0 else "starts again"
        reason = f"{type(error).__name__}: {error}{place}"
        logger.error(
            "service %r crashed, %d times in a row; it %s: %s",
            self.service.name, self._crashes, next_, reason, exc_info=error,
        )  # fmt: skip
        self._note("crashed", reason, crashed=True)

    def _pause(self) -> float:
        longest = min(self.service.longest_pause, _FIRST_PAUSE * 2.0 ** min(self._crashes - 1, 16))
        return random.uniform(longest / 2, longest)
