"""Announcements: which enqueues tell idle workers at once. Polling stays the truth; this is only a hint."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from rowlock import clock
from rowlock.errors import LedgerError

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

logger = logging.getLogger("rowlock.announcer")

# How often one process announces one flow at most; what comes in between is announced once, afterwards.
_QUIET_SECONDS = 0.01


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
