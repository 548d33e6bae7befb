"""A leader: an election on a lease. One instance leads, the others stand in line."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Self, TypeVar

from rowlock.errors import LedgerError, Refused
from rowlock.leases.lock import checked_name, checked_ttl

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from rowlock.leases.lease import Lease
    from rowlock.leases.locks import Locks

logger = logging.getLogger("rowlock.leader")

_TROUBLE_PAUSE = 1.0

OnElected = TypeVar("OnElected", bound="Callable[[Lease], object]")
OnLost = TypeVar("OnLost", bound="Callable[[], object]")


class Leader:
    """`with app.leader("reports") as election:` campaigns in the background until it is left.

    `is_leader` turns False by the local clock alone when renewals fail, before anybody else can be elected.
    """

    def __init__(self, locks: Callable[[], Locks], name: str, *, ttl: float = 30.0) -> None:
        self.name = checked_name(name)
        self.ttl = checked_ttl(name, ttl)
        self._locks = locks
        self._lease: Lease | None = None
        self._elected: list[Callable[[Lease], object]] = []
        self._deposed: list[Callable[[], object]] = []
        self._leading = threading.Event()
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._resigning = threading.Event()
        self._thread: threading.Thread | None = None

    # -- what others ask -----------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        lease = self._lease
        return lease is not None and lease.held

    @property
    def lease(self) -> Lease | None:
        """The lease while this instance leads: its token, its fenced transactions."""
        lease = self._lease
        return lease if lease is not None and lease.held else None

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until this instance leads; False if it does not within the timeout."""
        return self._leading.wait(timeout)

    def on_elected(self, tell: OnElected) -> OnElected:
        """Calls this with the lease at each election. It should return soon: the end is told after it."""
        self._elected.append(tell)
        return tell

    def on_lost(self, tell: OnLost) -> OnLost:
        """Calls this when this instance does not lead any more, for whatever reason."""
        self._deposed.append(tell)
        return tell

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._thread is not None:
            raise Refused(f"The election {self.name!r} has been started; one start is enough.")
        self._locks()  # a ledger that cannot be used is told here, not in the background
        self._thread = threading.Thread(
            target=self._campaign, name=f"rowlock-leader-{self.name}", daemon=True
        )
        self._thread.start()

    def resign(self) -> None:
        """Gives the lead to whoever is next in line, and stands in line again."""
        self._resigning.set()
        self._bell.set()

    def stop(self) -> None:
        """Gives up the lead, and the candidacy."""
        self._stopping.set()
        self._bell.set()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __aiter__(self) -> AsyncIterator[Lease | None]:
        """`async for lease in app.leader("reports"):` — a lease when elected, None when not leading any more."""
        return self._changes()

    async def _changes(self) -> AsyncGenerator[Lease | None, None]:
        loop = asyncio.get_running_loop()
        changes: asyncio.Queue[Lease | None] = asyncio.Queue()

        def put(change: Lease | None) -> None:
            if not self._stopping.is_set():  # afterwards nobody listens, and the loop may be closed
                loop.call_soon_threadsafe(changes.put_nowait, change)

        self.on_elected(put)
        self.on_lost(lambda: put(None))
        await asyncio.to_thread(self.start)
        try:
            while True:
                yield await changes.get()
        finally:
            await asyncio.to_thread(self.stop)

    # -- the campaign --------------------------------------------------------------------------------------------

    def _campaign(self) -> None:
        while not self._stopping.is_set():
            try:
                lease = self._stand()
            except LedgerError as error:
                logger.warning("the election %r waits for the ledger: %s", self.name, error)
                self._stopping.wait(_TROUBLE_PAUSE)
                continue
            if lease is not None:
                self._lead(lease)

    def _stand(self) -> Lease | None:
        locks = self._locks()
        wish = locks.wish(lease_name(self.name), ttl=self.ttl, wait=None)
        return locks.acquire(wish, bell=self._bell, stopping=self._stopping)

    def _lead(self, lease: Lease) -> None:
        self._locks().instance.tally.add("leader_changes", "")
        logger.info("leads %r (token %s)", self.name, lease.token)
        self._resigning.clear()
        self._lease = lease
        lease.on_lost(lambda _lease: self._bell.set())
        self._leading.set()
        try:
            for tell in self._elected:
                tell(lease)
            while lease.held and not self._stopping.is_set() and not self._resigning.is_set():
                self._bell.wait(lease.seconds_left)
                self._bell.clear()
        except Exception:
            logger.exception("a callback of the election %r failed: this instance resigns", self.name)
            self._stopping.wait(_TROUBLE_PAUSE)
        finally:
            self._step_down(lease)

    def _step_down(self, lease: Lease) -> None:
        self._leading.clear()
        self._lease = None
        # Whatever the leader does must have been told to stop before the next one is let in.
        for tell in self._deposed:
            try:
                tell()
            except Exception:
                logger.exception("a callback of the election %r failed", self.name)
        lease.__exit__(RuntimeError)  # a loss has been told, and is no error of ours
        logger.info("does not lead %r any more", self.name)


def lease_name(name: str) -> str:
    """The lease behind an election: whoever holds it leads."""
    return f"leader:{name}"
