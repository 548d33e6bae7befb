"""DistributedLock and LeaderElection: locks and leaders for programs with a loop of their own, step by step.

Both are thin: the lease behind them is renewed by the instance's heartbeat, whatever the loop does, and ends by the
local clock when it cannot be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from rowlock.errors import LeaseLost
from rowlock.leases.leader import lease_name
from rowlock.leases.lock import Lock

if TYPE_CHECKING:
    from rowlock.leases.lease import Lease
    from rowlock.leases.locks import Locks


class HasLocks(Protocol):
    """A Rowlock, as far as it matters here."""

    @property
    def locks(self) -> Locks: ...


class DistributedLock:
    """`lock = DistributedLock(app, "edgar_monitor", ttl_seconds=120)`, then acquire, renew, release."""

    def __init__(self, app: HasLocks, lock_name: str, ttl_seconds: float = 300) -> None:
        self._lock = Lock(lambda: app.locks, lock_name, ttl=ttl_seconds, wait=0)
        self.lock_name = lock_name
        self.lease: Lease | None = None

    @property
    def acquired(self) -> bool:
        """By the local clock alone: False before another instance could have it."""
        return self.lease is not None and self.lease.held

    async def acquire(self) -> bool:
        """Takes it if it is free; True if it is ours, also when it was before."""
        if not self.acquired:
            self.lease = await self._lock.atry_acquire()
        return self.acquired

    async def renew(self) -> None:
        """Raises LeaseLost when it is not ours any more. The renewing itself is done by the heartbeat."""
        if self.lease is None:
            raise LeaseLost(f"{self.lock_name!r} has not been acquired; acquire it first.")
        self.lease.check()

    async def release(self) -> None:
        """Gives it back; nothing happens if it was not ours. LeaseLost if it had been lost before."""
        lease, self.lease = self.lease, None
        if lease is not None:
            await self._lock.off_loop(lease.release)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.acquired:
            await self.release()


class LeaderElection:
    """`election = LeaderElection(app, "reports")`; call `campaign()` in the loop, and look at `is_leader`."""

    def __init__(self, app: HasLocks, service_name: str, ttl_seconds: float = 60) -> None:
        self._lock = DistributedLock(app, lease_name(service_name), ttl_seconds)
        self.service_name = service_name

    @property
    def is_leader(self) -> bool:
        return self._lock.acquired

    @property
    def lease(self) -> Lease | None:
        """The lease while this instance leads: its token, its fenced transactions."""
        return self._lock.lease if self.is_leader else None

    async def campaign(self) -> bool:
        """Becomes the leader if there is none; True if this instance leads."""
        return await self._lock.acquire()

    async def resign(self) -> None:
        await self._lock.release()
