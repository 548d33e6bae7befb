"""Where leases are waited for: in a thread or on an event loop, woken at once where the database can."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rowlock.leases.acquisition import Acquisition
from rowlock.leases.lease import Lease
from rowlock.leases.listener import Listener
from rowlock.leases.patience import to_its_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.instance import Instance
    from rowlock.ledger.ledger import Ledger

_T = TypeVar("_T")
logger = logging.getLogger("rowlock.leases")

# Calls from event loops; none of them waits for a lease inside.
_THREADS = 4


class Locks:
    """One for each app: its instance's keeper, and the bells of those who wait."""

    def __init__(self, instance: Instance, writes: Ledger) -> None:
        self.instance = instance
        self.keeper = instance.keeper
        self.keeper.ledger  # noqa: B018 - opened now, before several threads could each open one
        self.writes = writes
        self._bells: dict[Acquisition, Callable[[], None]] = {}
        self._changing = threading.Lock()
        self._listener: Listener | None = None
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="rowlock-locks")

    def close(self) -> None:
        """After its instance has ended: whoever still waits is told."""
        self._ring([])
        if self._listener is not None:
            self._listener.stop()
        self._threads.shutdown()

    def wish(
        self, name: str, *, slots: int = 1, ttl: float, wait: float | None, note: str | None = None
    ) -> Acquisition:
        """A wish of the task or thread that asks; Refused if it holds that very lease already."""
        owner = current_owner()
        self.keeper.refuse_nesting(name, owner)
        return Acquisition(
            self.keeper, name, slots=slots, ttl=ttl, wait=wait, note=note, owner=owner, writes=self.writes
        )

    def acquire(
        self,
        wish: Acquisition,
        *,
        bell: threading.Event | None = None,
        stopping: threading.Event | None = None,
    ) -> Lease | None:
        """Waits in this thread; None when `stopping` was set (and `bell`, to be noticed at once)."""
        bell = bell or threading.Event()
        lease: Lease | None = None
        try:
            while stopping is None or not stopping.is_set():
                found = wish.step()
                if isinstance(found, Lease):
                    lease = found
                    break
                self._hang(wish, bell.set)
                bell.wait(found)
                bell.clear()
        finally:
            self._unhang(wish)
            if lease is None:
                wish.leave()
        return lease

    async def aacquire(self, wish: Acquisition) -> Lease:
        """Waits on this event loop, without a thread of its own."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        lease: Lease | None = None
        try:
            while True:
                found = await self.off_loop(wish.step)
                if isinstance(found, Lease):
                    lease = found
                    return lease
                self._hang(wish, partial(_ring_on, loop, bell))
                try:
                    await asyncio.wait_for(bell.wait(), found)
                except TimeoutError:
                    continue
                bell.clear()
        finally:
            self._unhang(wish)
            if lease is None:
                await self.off_loop(wish.leave)

    async def off_loop(self, function: Callable[[], _T]) -> _T:
        """To its end even if the task is cancelled meanwhile: nothing is left half-known."""
        if self.keeper.closed:  # what was held has been given back: nothing here asks the ledger any more
            return function()
        return await to_its_end(asyncio.get_running_loop().run_in_executor(self._threads, function))

    # -- bells -------------------------------------------------------------------------------------------------

    def _hang(self, wish: Acquisition, ring: Callable[[], None]) -> None:
        with self._changing:
            self._bells[wish] = ring
            if self._listener is None and wish.ticket is not None:
                ledger = self.keeper.ledger
                self._listener = Listener(ledger, ledger.locks.channel, self._ring)
                self._listener.start()

    def _unhang(self, wish: Acquisition) -> None:
        with self._changing:
            self._bells.pop(wish, None)

    def _ring(self, tickets: list[str]) -> None:
        """Those whose turn was announced; all of them when anything may have changed."""
        named = {int(ticket) for ticket in tickets}
        with self._changing:
            bells = [ring for wish, ring in self._bells.items() if not named or wish.ticket in named]
        for ring in bells:
            ring()


def _ring_on(loop: asyncio.AbstractEventLoop, bell: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(bell.set)
    except RuntimeError:  # the loop has closed, and nobody waits on it any more
        logger.debug("nobody is left to be woken")


def current_owner() -> object:
    """The running task, or the thread where there is none."""
    try:
        return asyncio.current_task() or threading.current_thread()
    except RuntimeError:  # no event loop in this thread
        return threading.current_thread()
