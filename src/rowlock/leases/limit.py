"""A limit: a budget that the whole fleet shares, so that together it stays under what somebody outside allows."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rowlock import clock
from rowlock.errors import InvalidInput, LeaseLost, LedgerError, LimitReached, LockHeld, Refused
from rowlock.leases.lock import CancelOnLoss, checked_name, checked_ttl
from rowlock.leases.locks import current_owner
from rowlock.leases.moments import Moment, Moments
from rowlock.leases.rate import checked_burst, interval_of
from rowlock.ledger.limit_table import PREFIX, Declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from rowlock.leases.lease import Lease
    from rowlock.leases.locks import Locks

logger = logging.getLogger("rowlock.leases")

_LONGEST_NAME = 240  # the prefix of its lease has to fit too
_MOST_SLOTS = 1000
# Another instance's declaration is noticed within this time.
_FRESH_SECONDS = 5.0


class Permit:
    """One use of a limit. `lease` is its slot; None for a limit that has only a rate.

    `due` is its moment within the rate, or a little before, on the local monotonic clock (`rowlock.clock`).
    """

    __slots__ = ("_guard", "due", "lease", "limit")

    def __init__(self, limit: Limit, lease: Lease | None) -> None:
        self.limit = limit
        self.lease = lease
        self.due: float | None = None
        self._guard: CancelOnLoss | None = None

    def __repr__(self) -> str:
        return f"<Permit {self.limit.name} {self.lease or ''}>"

    def check(self) -> None:
        """Raises LeaseLost when somebody else may have this slot now; costs nothing."""
        if self.lease is not None:
            self.lease.check()

    def release(self) -> None:
        """Gives the slot back; the moment is spent. LeaseLost if the slot had been lost before."""
        if self.lease is not None:
            self.lease.release()

    def end(self) -> None:
        """Gives the slot back, whatever became of it: what is lost has been told."""
        if self.lease is not None:
            self.lease.__exit__(RuntimeError)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.lease is not None:
            self.lease.__exit__(kind, error, trace)

    def belongs_to(self, owner: object) -> None:
        """Another task goes on with it, and must not take the same limit again inside."""
        if self.lease is not None:
            self.lease.owner = owner

    def guard(self) -> None:
        """From now on the running task is cancelled when the slot is lost."""
        if self.lease is not None:
            self._guard = CancelOnLoss(self.lease)

    async def leave(
        self, locks: Locks, kind: type[BaseException] | None, error: BaseException | None
    ) -> None:
        if self.lease is None or self._guard is None:
            return
        cancelled_by_us = self._guard.end()
        try:
            await locks.off_loop(self.lease.release)
        except LedgerError as problem:
            logger.warning("%r could not be given back, it will run out: %s", self, problem)
        except LeaseLost as lost:
            if kind is None or (cancelled_by_us and issubclass(kind, asyncio.CancelledError)):
                raise lost from error


class Halt:
    """Ends somebody's waiting at once."""

    __slots__ = ("bell", "stopping")

    def __init__(self, bell: threading.Event | None = None, stopping: threading.Event | None = None) -> None:
        self.bell = bell or threading.Event()
        self.stopping = stopping or threading.Event()

    def set(self) -> None:
        self.stopping.set()
        self.bell.set()


class Limit:
    """`with app.limit("sec.gov", rate="10/s", concurrency=4):`, or `async with`.

    One object serves any number of threads and tasks at once. A use first takes a slot (waiters are served in order
    of arrival), then the next free moment. A slot whose holder died is back within one ttl; a moment that was
    reserved and not used is lost, so that the fleet never starts more than the rate allows.
    """

    def __init__(
        self,
        locks: Callable[[], Locks],
        name: str,
        *,
        rate: str | None = None,
        concurrency: int | None = None,
        burst: int = 1,
        ttl: float = 60.0,
        wait: float | None = None,
    ) -> None:
        self.name = checked_name(name)
        if len(name) > _LONGEST_NAME:
            raise InvalidInput(
                f"The limit's name has {len(name)} characters, and {_LONGEST_NAME} is the most: {name[:40]!r}…"
            )
        if rate is None and concurrency is None:
            raise InvalidInput(
                f"limit {name!r} limits nothing: give it a rate ('10/s'), a concurrency (4), or both."
            )
        if wait is not None and not wait >= 0:
            raise InvalidInput(
                f"limit {name!r}: wait={wait!r} s cannot be. Say 0 to try once, None to wait as long as it takes."
            )
        interval = None if rate is None else interval_of(name, rate)
        self.declared = Declared(
            rate, interval, checked_burst(name, burst, rate), _checked_slots(name, concurrency)
        )
        self.ttl = checked_ttl(name, ttl)
        self.wait = wait
        self._locks = locks
        self._moments = Moments(name)
        self._changing = threading.Lock()
        self._declaring = threading.Lock()
        self._allowed = self.declared
        self._declared_in: Locks | None = None
        self._fresh_until = 0.0
        self._permits: dict[object, list[Permit]] = {}

    def __repr__(self) -> str:
        return f"<Limit {self.name} {_in_words(self.declared)}>"

    @property
    def lock_name(self) -> str:
        """The lease whose slots are this limit's concurrency."""
        return PREFIX + self.name

    # -- threads ---------------------------------------------------------------------------------------------

    def acquire(self) -> Permit:
        """One use, or LimitReached when the wait is over. Use it as a context manager, or release it."""
        permit = self.wait_for(Halt(), self.wait)
        assert permit is not None  # noqa: S101 - nobody can halt this wait
        return permit

    def wait_for(self, halt: Halt, wait: float | None = None) -> Permit | None:
        """One use; None when it was halted while it waited."""
        give_up = _give_up(wait)
        locks = self._locks()
        allowed = self._declare(locks)
        lease: Lease | None = None
        if allowed.concurrency is not None:
            with _no_slot(self.name):
                wish = locks.wish(self.lock_name, slots=allowed.concurrency, ttl=self.ttl, wait=wait)
                lease = locks.acquire(wish, bell=halt.bell, stopping=halt.stopping)
            if lease is None:
                return None
        permit = Permit(self, lease)
        try:
            started = allowed.interval is None or self._wait_for_moment(permit, locks, halt, give_up)
        except BaseException:
            permit.end()
            raise
        if not started:
            permit.end()
        return permit if started else None

    def _wait_for_moment(self, permit: Permit, locks: Locks, halt: Halt, give_up: float) -> bool:
        moment = Moment(self._moments, locks.keeper.ledger, give_up)
        while (pause := moment.pause()) is not None:
            if halt.stopping.is_set():
                return False
            if pause == 0:
                moment.ask()
            else:
                halt.bell.wait(pause)
                halt.bell.clear()
        permit.due = moment.due
        return True

    def __enter__(self) -> Permit:
        return self._keep(self.acquire())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kept().__exit__(kind, error, trace)

    # -- event loops -------------------------------------------------------------------------------------------

    async def aacquire(self) -> Permit:
        """`acquire` on an event loop. It cancels nobody when its slot is lost: `async with` does."""
        return await self.await_for(self.wait)

    async def await_for(self, wait: float | None = None) -> Permit:
        give_up = _give_up(wait)
        # The first use registers the instance, which asks the ledger.
        locks = await asyncio.to_thread(self._locks)
        allowed = self._known(locks)
        if allowed is None:
            allowed = await locks.off_loop(lambda: self._declare(locks))
        lease: Lease | None = None
        if allowed.concurrency is not None:
            with _no_slot(self.name):
                wish = locks.wish(self.lock_name, slots=allowed.concurrency, ttl=self.ttl, wait=wait)
                lease = await locks.aacquire(wish)
        permit = Permit(self, lease)
        try:
            if allowed.interval is not None:
                await self._await_moment(permit, locks, give_up)
        except BaseException:
            await locks.off_loop(permit.end)
            raise
        return permit

    async def _await_moment(self, permit: Permit, locks: Locks, give_up: float) -> None:
        moment = Moment(self._moments, locks.keeper.ledger, give_up)
        while (pause := moment.pause()) is not None:
            if pause == 0:
                await locks.off_loop(moment.ask)
            else:
                await asyncio.sleep(pause)
        permit.due = moment.due

    async def __aenter__(self) -> Permit:
        permit = self._keep(await self.aacquire())
        permit.guard()
        return permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._kept().leave(self._locks(), kind, error)

    # -- who uses it now, and what it allows -------------------------------------------------------------------

    def _keep(self, permit: Permit) -> Permit:
        with self._changing:
            self._permits.setdefault(current_owner(), []).append(permit)
        return permit

    def _kept(self) -> Permit:
        owner = current_owner()
        with self._changing:
            kept = self._permits.get(owner)
            if not kept:
                raise Refused(
                    f"limit {self.name!r}: this task has not entered it; leave it where you entered it."
                )
            permit = kept.pop()
            if not kept:
                del self._permits[owner]
        return permit

    def _known(self, locks: Locks) -> Declared | None:
        fresh = self._declared_in is locks and clock.monotonic() < self._fresh_until
        return self._allowed if fresh else None

    def _declare(self, locks: Locks) -> Declared:
        """What the ledger says that this limit allows; at the first use here, that is what we say."""
        with self._declaring:
            if (known := self._known(locks)) is not None:
                return known
            table = locks.keeper.ledger.limits
            found = table.find(self.name)
            if found is None or (self._declared_in is not locks and found != self.declared):
                if found is not None:
                    logger.warning(
                        "limit %r was declared as %s, and is %s from now on, for everybody: the last one counts",
                        self.name, _in_words(found), _in_words(self.declared),
                    )  # fmt: skip
                table.declare(self.name, self.declared, locks.keeper.holder)
                found = self.declared
            self._allowed, self._declared_in = found, locks
            self._fresh_until = clock.monotonic() + _FRESH_SECONDS
        return found


@contextmanager
def _no_slot(name: str) -> Iterator[None]:
    """A slot that could not be had in time is a limit that is reached."""
    try:
        yield
    except LockHeld as error:
        raise LimitReached(f"limit {name!r}: no slot is free. {error}") from error


def _give_up(wait: float | None) -> float:
    return math.inf if wait is None else clock.monotonic() + wait


def _checked_slots(name: str, concurrency: int | None) -> int | None:
    if concurrency is None:
        return None
    if (
        isinstance(concurrency, bool)
        or not isinstance(concurrency, int)
        or not 1 <= concurrency <= _MOST_SLOTS
    ):
        raise InvalidInput(
            f"limit {name!r}: concurrency={concurrency!r} is outside 1 … {_MOST_SLOTS}. It is how many may use it at once."
        )
    return concurrency


def _in_words(declared: Declared) -> str:
    parts = [declared.rate] if declared.rate else []
    parts += [f"bursts of {declared.burst}"] if declared.burst > 1 else []
    parts += [f"{declared.concurrency} at once"] if declared.concurrency else []
    return ", ".join(parts)
