"""What an app opens when it is first used, and closes."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Self

from rowlock.errors import ConfigurationError
from rowlock.leases.instance import Instance
from rowlock.leases.locks import Locks
from rowlock.ledger.ledger import Ledger
from rowlock.queue.enqueue import Enqueuer
from rowlock.settings import Settings, load_settings

if TYPE_CHECKING:
    from rowlock.queue.flow import Flow


class Opening:
    """Nothing is connected until it is needed."""

    def __init__(self, ledger_url: str | None = None, *, settings: Settings | None = None) -> None:
        if settings is not None and ledger_url is not None:
            raise ConfigurationError("Give Rowlock a URL or settings, not both: the settings hold a URL.")
        self.settings = settings or load_settings(ledger_url=ledger_url)
        self.flows: dict[str, Flow] = {}
        self._name: str | None = None
        self._opening = threading.RLock()  # threads may be the first to use something at the same time

    @cached_property
    def _enqueuer(self) -> Enqueuer:
        return Enqueuer(self.ledger, self.flows)

    @cached_property
    def locks(self) -> Locks:
        """This process as an instance that takes leases; registered at the first use, gone with `close()`."""
        with self._opening:
            return self.__dict__.get("locks") or self._open_locks()

    def _open_locks(self) -> Locks:
        locks = Locks(Instance(self.settings, name=self._name), self.ledger)
        locks.instance.start()
        self.__dict__["locks"] = locks  # before the next thread is let in
        return locks

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, opened at the first use; SchemaMismatch if its tables do not fit this code."""
        with self._opening:
            return self.__dict__.get("ledger") or self._open_ledger()

    def _open_ledger(self) -> Ledger:
        ledger = Ledger.open(self.settings)
        try:
            # Only if it must: the first use may be inside the caller's own transaction, which has the write lock.
            if ledger.dialect == "sqlite" and ledger.schema.version() < ledger.schema.latest:
                ledger.schema.migrate()
            ledger.schema.check()
        except BaseException:
            ledger.close()  # nobody else knows it yet
            raise
        self.__dict__["ledger"] = ledger
        return ledger

    def close(self) -> None:
        """Gives back what is held and closes what was opened; it opens again at the next use."""
        if "locks" in self.__dict__:
            locks = self.__dict__.pop("locks")
            locks.instance.stop()
            locks.close()
        self.__dict__.pop("jobs", None)
        if "_enqueuer" in self.__dict__:
            self.__dict__.pop("_enqueuer").close()
        if "databases" in self.__dict__:
            self.__dict__.pop("databases").close()
        if "ledger" in self.__dict__:
            self.__dict__.pop("ledger").close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
