"""The listener: how whoever waits learns at once that something changed. Polling stays the truth; this is only a hint."""

from __future__ import annotations

import logging
import select
import socket
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

from rowlock.databases.engine import is_connection_lost
from rowlock.errors import LedgerError, LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.ledger.ledger import Ledger

logger = logging.getLogger("rowlock.listener")

_RECONNECT_SECONDS = 2.0
_LISTEN_SECONDS = 5.0
_WATCH_SECONDS = 0.02


class Listener:
    """Calls `wake` with what was announced on the channel; with nothing when anything at all may have changed."""

    def __init__(self, ledger: Ledger, channel: str, wake: Callable[[list[str]], None]) -> None:
        self._ledger = ledger
        self._channel = channel
        self._wake = wake
        self._stopping = threading.Event()
        self._bell, self._cord = socket.socketpair()  # ends a wait for notifications at once
        watch = self._listen if ledger.dialect == "postgresql" else self._watch_file
        self._thread = threading.Thread(
            target=self._keep, args=(watch,), name="rowlock-listener", daemon=True
        )

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
                self._wake([])

    def _listen(self) -> None:
        """PostgreSQL: LISTEN on a connection of its own."""
        with self._ledger.translated():
            pooled = self._ledger.engine.raw_connection()
        driver: Any = pooled.driver_connection
        pooled.detach()
        try:
            driver.autocommit = True
            driver.execute(f'LISTEN "{self._channel}"')
            self._wake([])  # whatever came before we listened
            waiting = select.poll()  # select() itself fails in a program with more than 1,024 open files
            waiting.register(driver.fileno(), select.POLLIN)
            waiting.register(self._bell, select.POLLIN)
            while not self._stopping.is_set():
                waiting.poll(_LISTEN_SECONDS * 1000)
                announced = _announced(driver.pgconn)
                if announced:
                    self._wake(announced)
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
                    self._wake([])


def _announced(connection: Any) -> list[str]:
    """What has arrived, without waiting."""
    connection.consume_input()
    found = []
    while (notification := connection.notifies()) is not None:
        found.append(notification.extra.decode())
    return found
