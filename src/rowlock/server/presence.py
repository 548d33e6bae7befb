"""The server as an instance: in the registry with the role `server`, alive by its own heartbeat, gone when it drains."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.app import Rowlock
    from rowlock.leases.instance import Instance
    from rowlock.queue.worker import Companion


class Presence:
    """What `/health` asks."""

    def __init__(self, app: Rowlock) -> None:
        self._app = app
        self._instance: Instance | None = None
        self._draining = threading.Event()
        self._on_drain: list[Callable[[], None]] = []
        self._companions: list[Companion] = []

    def begin(self) -> None:
        """Registers; raises LedgerError when the ledger cannot be reached."""
        if self._instance is None:
            instance = self._app.locks.instance
            instance.on_drain(self.drain)
            instance.announce("server")
            self._instance = instance
            self._companions = [make(instance) for make in self._app.companions()]
            for companion in self._companions:
                companion.start()

    def end(self) -> None:
        """Not ready any more, and nothing of it goes on beside the app."""
        self.drain()
        while self._companions:
            self._companions.pop().stop()

    def on_drain(self, tell: Callable[[], None]) -> None:
        self._on_drain.append(tell)

    def drain(self) -> None:
        """From now on it is not ready; told by a signal, or by the ledger with a heartbeat."""
        if not self._draining.is_set():
            self._draining.set()
            for tell in self._on_drain:
                tell()

    @property
    def draining(self) -> bool:
        return self._draining.is_set()

    @property
    def alive(self) -> bool:
        """False when the heartbeat's thread has died. It may well fail while the ledger is away: that is not death."""
        return self._instance is None or self._instance.beating

    @property
    def instance_id(self) -> int | None:
        return self._instance.id if self._instance else None
