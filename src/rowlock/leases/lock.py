"""A lock: a named lease, waited for in order of arrival."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from rowlock import log
from rowlock.errors import InvalidInput, LeaseLost, LedgerError, LockHeld, Refused
from rowlock.leases.acquisition import try_to_take

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rowlock.leases.lease import Lease
    from rowlock.leases.locks import Locks

logger = logging.getLogger("rowlock.leases")

LONGEST_NAME = 255
SHORTEST_TTL, LONGEST_TTL = 1.0, 86400.0


class Lock:
    """`with app.lock("edgar_monitor", ttl=60, wait=10) as lease:`, or `async with`.

    Losing the lease cancels an `async with` block, which then raises LeaseLost; a plain `with` block is told by
    `lease.lost` and `lease.check()`, and raises LeaseLost at its end.
    """

    def __init__(
        self,
        locks: Callable[[], Locks],
        name: str,
        *,
        ttl: float = 60.0,
        wait: float | None = None,
        note: str | None = None,
    ) -> None:
        self.name = checked_name(name)
        self.ttl = checked_ttl(name, ttl)
        if wait is not None and not wait >= 0:
            raise InvalidInput(
                f"lock {name!r}: wait={wait!r} s cannot be. Say 0 to try once, None to wait as long as it takes."
            )
        self.wait = wait
        self.note = note
        self._locks = locks
        self._opened: Locks | None = None
        self._lease: Lease | None = None
        self._guard: CancelOnLoss | None = None

    # -- threads ---------------------------------------------------------------------------------------------

    def acquire(self) -> Lease:
        """Takes it, or raises LockHeld when the wait is over. Use it as a context manager, or release it."""
        locks = self._locks()
        lease = locks.acquire(locks.wish(self.name, ttl=self.ttl, wait=self.wait, note=self.note))
        assert lease is not None  # noqa: S101 - nobody can stop this wait
        return lease

    def try_acquire(self) -> Lease | None:
        """Takes it if it is free now, and None if not."""
        return try_to_take(self._locks().wish(self.name, ttl=self.ttl, wait=0, note=self.note))

    def __enter__(self) -> Lease:
        self._refuse_reentry()
        self._lease = self.acquire()
        return self._lease.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lease, self._lease = self._lease, None
        assert lease is not None  # noqa: S101 - __enter__ took it
        lease.__exit__(kind, error, trace)

    # -- event loops -------------------------------------------------------------------------------------------

    async def aacquire(self) -> Lease:
        """`acquire` on an event loop. It cancels nobody when it is lost: `async with` does."""
        locks = await self._open()
        return await locks.aacquire(locks.wish(self.name, ttl=self.ttl, wait=self.wait, note=self.note))

    async def atry_acquire(self) -> Lease | None:
        locks = await self._open()
        try:
            return await locks.aacquire(locks.wish(self.name, ttl=self.ttl, wait=0, note=self.note))
        except LockHeld as error:
            logger.debug("%s", error)
            return None

    async def __aenter__(self) -> Lease:
        self._refuse_reentry()
        self._lease = await self.aacquire()
        self._guard = CancelOnLoss(self._lease)
        log.hold(self._lease)
        return self._lease

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lease, self._lease = self._lease, None
        assert lease is not None  # noqa: S101 - __aenter__ took it
        assert self._guard is not None  # noqa: S101
        cancelled_by_us = self._guard.end()
        log.let_go(lease)
        try:
            await self.off_loop(lease.release)
        except LedgerError as problem:
            logger.warning("%r could not be given back, it will run out: %s", lease, problem)
        except LeaseLost as lost:
            if kind is None or (cancelled_by_us and issubclass(kind, asyncio.CancelledError)):
                raise lost from error

    async def off_loop(self, function: Callable[[], None]) -> None:
        """Something that asks the ledger, to its end."""
        assert self._opened is not None  # noqa: S101 - whoever holds a lease has opened it
        await self._opened.off_loop(function)

    async def _open(self) -> Locks:
        # The first use registers the instance, which asks the ledger.
        self._opened = await asyncio.to_thread(self._locks)
        return self._opened

    def _refuse_reentry(self) -> None:
        if self._lease is not None:
            raise Refused(f"This Lock object is in use; make one for each use: app.lock({self.name!r}).")


class CancelOnLoss:
    """Cancels the task that holds a lease when the lease is lost, as a timeout would."""

    def __init__(self, lease: Lease) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in a coroutine
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._ended = self._cancelled = False
        lease.on_lost(lambda _lease: self._tell())

    def _tell(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # the loop has closed, and with it the task has ended
            logger.debug("nobody is left to be told")

    def _cancel(self) -> None:
        if not self._ended:
            self._cancelled = True
            self._task.cancel()

    def end(self) -> bool:
        """True if the task was cancelled because of the lease, and for no other reason."""
        self._ended = True
        return self._cancelled and self._task.uncancel() == 0


def checked_name(name: str) -> str:
    """A lease's name: something to read, at most 255 characters of it."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"A lock needs a name, and {name!r} is none.")
    if len(name) > LONGEST_NAME:
        raise InvalidInput(
            f"The lock's name has {len(name)} characters, and {LONGEST_NAME} is the most: {name[:40]!r}…"
        )
    if not name.isprintable():
        raise InvalidInput(f"The lock's name {name!r} has characters that cannot be printed.")
    return name


def checked_ttl(name: str, ttl: float) -> float:
    if not SHORTEST_TTL <= ttl <= LONGEST_TTL:
        raise InvalidInput(
            f"lock {name!r}: ttl={ttl!r} s is outside {SHORTEST_TTL:g} … {LONGEST_TTL:g}. It is how long others wait when "
            "the holder dies; while it lives it is renewed, however long the work takes."
        )
    return float(ttl)
