"""Wake-ups: how an idle worker learns at once that there is work. Polling stays the truth; this is only a hint."""

from __future__ import annotations

import logging
import select
import socket
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

from rowlock import clock
from rowlock.databases.engine import is_connection_lost
from rowlock.errors import LedgerError, LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.ledger.ledger import Ledger

logger = logging.getLogger("rowlock.wakeup")

_RECONNECT_SECONDS = 2.0
_LISTEN_SECONDS = 5.0
_WATCH_SECONDS = 0.02
# How often one process announces one flow at most; what comes in between is announced once, afterwards.
_QUIET_SECONDS = 0.01


class Listener:
    """Calls `wake` when something in the ledger may be ready."""

    def __init__(self, ledger: Ledger, wake: Callable[[], None]) -> None:
        self._ledger = ledger
        self._wake = wake
        self._stopping = threading.Event()
        self._bell, self._cord = socket.socketpair()  # ends a wait for notifications at once
        watch = self._listen if ledger.dialect == "postgresql" else self._watch_file
        self._thread = threading.Thread(target=self._keep, args=(watch,), name="rowlock-wakeup", daemon=True)

    def start(self) -> None:
        if not self._ledger.settings.transaction_pooler:
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._cord.close()
        if self._thread.is_alive():
            self._thread.join()
        self._bell.close()

    def _keep(self, watch: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                watch()
            except LedgerError as error:
                logger.warning("wake-ups are off, polling goes on: %s", error)
                self._stopping.wait(_RECONNECT_SECONDS)
                self._wake()

    def _listen(self) -> None:
        """PostgreSQL: LISTEN on a connection of its own."""
        with self._ledger.translated():
            pooled = self._ledger.engine.raw_connection()
        driver: Any = pooled.driver_connection
        pooled.detach()
        try:
            driver.autocommit = True
            driver.execute(f'LISTEN "{self._ledger.channel}"')
            self._wake()  # whatever came before we listened
            while not self._stopping.is_set():
                select.select([driver, self._bell], [], [], _LISTEN_SECONDS)
                if _drain_notifications(driver.pgconn):
                    self._wake()
        except Exception as error:
            if is_connection_lost(error):
                raise LedgerUnavailable(str(error)) from error
            raise
        finally:
            driver.close()

    def _watch_file(self) -> None:
        """SQLite: its data_version changes when another connection has committed; asking costs microseconds."""
        with self._ledger.translated(), self._ledger.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)  # noqa: S101
            seen = None
            while not self._stopping.wait(_WATCH_SECONDS):
                version = driver.execute("PRAGMA data_version").fetchone()
                if version != seen:
                    seen = version
                    self._wake()


def _drain_notifications(connection: Any) -> bool:
    """Reads what has arrived, without waiting; True if there was a notification in it."""
    connection.consume_input()
    found = False
    while connection.notifies() is not None:
        found = True
    return found


class Announcer:
    """Decides which enqueues of this process say NOTIFY: committing with one takes a lock over the whole server.

    The first of a burst does; the rest of it is announced together, by a thread, when the burst has passed.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last: dict[str, float] = {}
        self._late: set[str] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def may_notify(self, flow: str) -> bool:
        """True if the enqueue that asks is to announce itself."""
        if self._ledger.dialect != "postgresql":
            return False
        now = clock.monotonic()
        with self._changed:
            if now - self._last.get(flow, 0.0) >= _QUIET_SECONDS:
                self._last[flow] = now
                return True
            self._late.add(flow)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rowlock-announcer", daemon=True)
                self._thread.start()
            self._changed.notify()
            return False

    def close(self) -> None:
        """Announces what is still to be announced, and ends."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._late or self._closed)
                if not self._late:
                    return
            time.sleep(_QUIET_SECONDS)
            with self._changed:
                flows, self._late = self._late, set()
                self._last.update(dict.fromkeys(flows, clock.monotonic()))
            for flow in flows:
                self._announce(flow)

    def _announce(self, flow: str) -> None:
        try:
            self._ledger.wake(flow)
        except LedgerError as error:
            logger.warning("flow %s: a late wake-up was lost, polling will find the records: %s", flow, error)
