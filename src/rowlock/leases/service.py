"""A service: a function that runs on exactly one instance, and on another within one ttl when that one dies."""

from __future__ import annotations

import asyncio
import inspect
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlock.errors import ConfigurationError
from rowlock.leases.lock import checked_name, checked_ttl

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.leases.lease import Lease
    from rowlock.leases.limit import Limit
    from rowlock.leases.transaction import LeaseTransaction


@dataclass(frozen=True)
class Service:
    """What a program declares with `@app.service(…)`."""

    name: str
    function: Callable[..., Any]
    every: float | None = None
    ttl: float = 30.0
    on_start: Callable[..., Any] | None = None
    on_stop: Callable[..., Any] | None = None
    longest_pause: float = 60.0
    limit: Limit | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)
        checked_ttl(self.name, self.ttl)
        if self.every is not None and not self.every > 0:
            raise ConfigurationError(
                f"service {self.name!r}: every={self.every!r} s cannot be. Leave it out for a function that runs on."
            )
        for function in (self.function, self.on_start, self.on_stop):
            if function is not None:
                _takes_run(self.name, function)

    @property
    def lock_name(self) -> str:
        return f"service:{self.name}"


class ServiceRun:
    """What a service's function is given: its lease, and whether it must stop."""

    def __init__(self, service: Service, lease: Lease, stopping: threading.Event) -> None:
        self.name = service.name
        self.lease = lease
        self._stopping = stopping
        self.bell = threading.Event()  # rung when the run must end, for whatever reason
        lease.on_lost(lambda _lease: self.bell.set())

    @property
    def token(self) -> int:
        return self.lease.token

    @property
    def stopping(self) -> bool:
        """True when the run must end: the program stops, or the lease is lost."""
        return self._stopping.is_set() or not self.lease.held

    def wait(self, seconds: float) -> bool:
        """Sleeps, and is woken when the run must end; True while it may go on."""
        if not self.stopping:
            self.bell.wait(seconds)
        return not self.stopping

    def check(self) -> None:
        """Raises LeaseLost when another instance may run the service now."""
        self.lease.check()

    def transaction(self) -> LeaseTransaction:
        """Writes that are committed while this instance holds the service, or not at all."""
        return self.lease.transaction()


def call(service: Service, function: Callable[..., Any], run: ServiceRun) -> Any:
    """With the run if it wants one. Gives a coroutine for an async function."""
    return function(run) if _takes_run(service.name, function) else function()


def is_async(function: Callable[..., Any]) -> bool:
    return asyncio.iscoroutinefunction(function) or asyncio.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is async
    )


def _takes_run(service: str, function: Callable[..., Any]) -> bool:
    if not callable(function):
        raise ConfigurationError(f"service {service!r}: {function!r} is not a function.")
    wanted = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(wanted) > 1:
        raise ConfigurationError(
            f"service {service!r}: {getattr(function, '__name__', function)} takes {len(wanted)} arguments; it is given "
            "its run, or nothing."
        )
    return bool(wanted)
