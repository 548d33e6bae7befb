"""The enqueuer: a process that is killed like any other, and begins again a little before the place where it was.

What it had enqueued it enqueues again; every key is accepted once.
"""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from rowlock.errors import LedgerError
from rowlock.proof.position import Position
from rowlock.proof.sample import samples
from rowlock.proof.workload import Workload, schema_of

if TYPE_CHECKING:
    from rowlock.proof.workload import Program

logger = logging.getLogger("rowlock.proof")

_CHUNK = 1000
_OVERLAP = 2 * _CHUNK
_MOST_LIVE = 10_000  # so that the queue is a queue, and not an archive
_PAUSE = 0.05
_LATER = 0.3


class Enqueuer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._app = Workload(program).app
        schema = schema_of(self._app.settings)
        prefix = f'"{schema}".' if schema else ""
        self._count = f"SELECT count(*) FROM {prefix}processing_queue"
        self._allowed = Position(program.folder, "allowed")
        self._enqueued = Position(program.folder, "enqueued")
        self._stopping = threading.Event()
        self._chunks = 0

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())
        at = max(0, self._enqueued.read() - _OVERLAP)
        while at < self._program.records and not self._stopping.is_set():
            end = min(at + _CHUNK, self._program.records, self._allowed.read())
            try:
                if end <= at or self._live() > _MOST_LIVE:
                    self._stopping.wait(_PAUSE)
                    continue
                self._enqueue(at, end)
            except LedgerError as error:
                logger.info("the enqueuer tries again: %s", error)
                self._stopping.wait(_LATER)
                continue
            at = end
            self._enqueued.write(at)
        self._app.close()

    def _enqueue(self, at: int, end: int) -> None:
        """One chunk: each flow by itself, or (every other chunk) all of them in one transaction of our own."""
        by_flow: dict[str, list[dict[str, Any]]] = {}
        for record in samples(self._program.seed, at, end):
            by_flow.setdefault(record.flow, []).append({"key": record.key, "draw": record.draw})
        ledger = self._app.ledger
        self._chunks += 1
        own = self._chunks % 2 == 0
        with ledger.translated(), ledger.engine.begin() if own else nullcontext() as connection:
            for flow, payloads in by_flow.items():
                self._app.enqueue(flow, payloads, key=lambda payload: payload["key"], connection=connection)

    def _live(self) -> int:
        ledger = self._app.ledger
        with ledger.translated(), ledger._single.connect() as connection:  # noqa: SLF001 - no write lock for a look
            return int(connection.exec_driver_sql(self._count).scalar() or 0)
