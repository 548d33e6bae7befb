"""A flow: a named kind of work, with its handler and its policies."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rowlock.errors import ConfigurationError
from rowlock.leases.limit import Limit
from rowlock.queue.breaker import Breaker
from rowlock.queue.payload import check_flow_name
from rowlock.queue.retry import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

ExecutorKind = Literal["thread", "async", "process"]


@dataclass(frozen=True, slots=True)
class Flow:
    """What `@app.flow(…)` registers."""

    name: str
    handler: Callable[[Any], Any]
    max_attempts: int = 5
    max_deaths: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    timeout: float | None = None
    concurrency: int = 8
    batch: int | None = None
    executor: ExecutorKind = "thread"
    limit: Limit | None = None
    breaker: Breaker | None = None

    def __post_init__(self) -> None:
        check_flow_name(self.name)
        for what in ("max_attempts", "max_deaths", "concurrency"):
            self._require(getattr(self, what) >= 1, f"{what} must be at least 1")
        self._require(
            self.timeout is None or self.timeout > 0, "timeout must be above 0 (or None for no limit)"
        )
        self._require(self.batch is None or 1 <= self.batch <= 10_000, "batch must be 1 to 10,000")
        self._require(self.executor in ("thread", "async", "process"), "executor is 'thread' or 'process'")
        self._require(callable(self.handler), "the handler must be callable")
        self._require(
            self.limit is None or isinstance(self.limit, Limit),
            "limit is what app.limit(…) makes, not a string or number",
        )
        self._require(self.breaker is None or isinstance(self.breaker, Breaker), "breaker is a Breaker(…)")
        asynchronous = inspect.iscoroutinefunction(self.handler)
        if asynchronous:
            self._require(
                self.executor != "process", "an async handler runs on the event loop, not in a process"
            )
            object.__setattr__(self, "executor", "async")
        else:
            self._require(self.executor != "async", "executor='async' needs an `async def` handler")

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise ConfigurationError(f"flow {self.name!r}: {message}.")

    @property
    def limits(self) -> dict[str, Any]:
        """What the ledger has to know of a flow: the parameters of `flow_register`."""
        return {"flow": self.name, "max_attempts": self.max_attempts, "max_deaths": self.max_deaths}

    @property
    def address(self) -> str:
        """Where another process finds the handler: module:qualified name."""
        return f"{self.handler.__module__}:{self.handler.__qualname__}"
