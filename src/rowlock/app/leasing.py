"""What an app does with leases: locks, leaders, services and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rowlock.app.opening import Opening
from rowlock.errors import ConfigurationError
from rowlock.leases.leader import Leader
from rowlock.leases.limit import Limit
from rowlock.leases.lock import Lock
from rowlock.leases.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.lease import Lease

Function = TypeVar("Function", bound="Callable[..., Any]")


class Leasing(Opening):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.services: dict[str, Service] = {}

    def lock(self, name: str, *, ttl: float = 60, wait: float | None = None, note: str | None = None) -> Lock:
        """`with app.lock("edgar_monitor") as lease:`, or `async with`; one holder in the whole fleet.

        Args:
            name: what must be done by one at a time; at most 255 characters.
            ttl: seconds after which others may have it when the holder has died. While it lives, its heartbeat
                renews the lease, however long the work takes.
            wait: seconds to wait in line before LockHeld is raised; 0 tries once, None waits as long as it takes.
            note: what the holder does, for whoever looks at `rowlock locks`.

        """
        return Lock(lambda: self.locks, name, ttl=ttl, wait=wait, note=note)

    def try_lock(self, name: str, *, ttl: float = 60, note: str | None = None) -> Lease | None:
        """The lease if it is free now, otherwise None. Use it as a context manager, or release it."""
        return self.lock(name, ttl=ttl, wait=0, note=note).try_acquire()

    async def atry_lock(self, name: str, *, ttl: float = 60, note: str | None = None) -> Lease | None:
        """`try_lock`, off the event loop."""
        return await self.lock(name, ttl=ttl, wait=0, note=note).atry_acquire()

    def leader(self, name: str, *, ttl: float = 30) -> Leader:
        """An election: one instance leads, the others stand in line. `with app.leader("reports") as election:`."""
        return Leader(lambda: self.locks, name, ttl=ttl)

    def service(
        self,
        name: str,
        *,
        every: float | None = None,
        ttl: float = 30,
        on_start: Callable[..., Any] | None = None,
        on_stop: Callable[..., Any] | None = None,
        longest_pause: float = 60,
        limit: Limit | None = None,
    ) -> Callable[[Function], Function]:
        """Registers a function that runs on exactly one instance; `rowlock run` and `app.program()` see to it.

        The function, plain or async, is given its ServiceRun if it takes an argument. What it writes through
        `run.transaction()` is fenced: refused when another instance has taken over.

        Args:
            name: of the service; the same in every copy of the program.
            every: seconds from one run to the next. Without it the function runs on, and is started again when it
                returns or raises.
            ttl: seconds after which another instance takes over when this one has died.
            on_start: called when this instance has become the one.
            on_stop: called when it stops being the one, unless it died.
            longest_pause: after a crash it is started again after 1 s, 2 s, 4 s, … up to this.
            limit: `app.limit(…)`; each run is one use of it.

        """

        def register(function: Function) -> Function:
            if name in self.services:
                raise ConfigurationError(f"service {name!r} is already registered.")
            self.services[name] = Service(
                name=name,
                function=function,
                every=every,
                ttl=ttl,
                on_start=on_start,
                on_stop=on_stop,
                longest_pause=longest_pause,
                limit=limit,
            )
            return function

        return register

    def limit(
        self,
        name: str,
        *,
        rate: str | None = None,
        concurrency: int | None = None,
        burst: int = 1,
        ttl: float = 60,
        wait: float | None = None,
    ) -> Limit:
        """A budget that all instances share: `with app.limit("sec.gov", rate="10/s", concurrency=4):`.

        Make it once and use it from any number of threads and tasks; give it to flows and services as `limit=`.
        Nothing is connected until its first use. If instances declare one name differently, the last one counts.

        Args:
            name: what is limited; at most 240 characters.
            rate: how many uses may start: "10/s", "600/m", "5000/h", "1/d".
            concurrency: how many uses there may be at the same time, 1 to 1000.
            burst: how many may start at once after an idle time; 1 spaces them evenly.
            ttl: seconds after which a dead holder's slot is free again.
            wait: seconds to wait before LimitReached is raised; 0 tries once, None waits as long as it takes. Flows
                wait as long as it takes.

        """
        return Limit(
            lambda: self.locks, name, rate=rate, concurrency=concurrency, burst=burst, ttl=ttl, wait=wait
        )
