"""The workload: a program as its users write them, with every kind of handler that can go wrong.

Effects are rows in tables *without* a unique key: whatever happens twice is there twice, to be counted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from rowlock.app import Rowlock
from rowlock.databases.url import parse_url
from rowlock.errors import LeaseLost, LedgerError, LockHeld
from rowlock.proof.position import Position
from rowlock.queue.flow import Flow
from rowlock.queue.retry import Backoff
from rowlock.queue.schedule import Schedule
from rowlock.queue.scheduler import Scheduler
from rowlock.settings import Settings

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from sqlalchemy.engine import Engine

    from rowlock.queue.record import Record

logger = logging.getLogger("rowlock.proof")

LOCK = "proof"
TICK = Schedule(name="tick", cron="* * * * * *", flow="tick", missed="all")
_MANY = 1000  # attempts and deaths that only a bug uses up: the nemesis strikes whoever it meets
DOOMED_ATTEMPTS = 3
POISON_DEATHS = 3
MAX_ATTEMPTS = {"doomed": DOOMED_ATTEMPTS, "poison": _MANY}
_SOON = Backoff(base=0.05, cap=0.5)
_HANG_SECONDS = 0.4
_LOCK_PAUSE = 0.05
_LOCK_TURNS = 12


@dataclass(frozen=True)
class Program:
    """What one process of the run needs to know; it goes to it over a pipe, because URLs hold passwords."""

    settings: dict[str, Any]
    second_url: str
    seed: int
    records: int
    folder: str

    def app(self) -> Rowlock:
        return Rowlock(settings=Settings(**self.settings))


def tables(schema: str | None) -> dict[str, str]:
    """The names of our tables in the ledger's database."""
    prefix = f'"{schema}".' if schema else ""
    return {name: f"{prefix}proof_{name}" for name in ("effects", "cures", "fenced")}


def schema_of(settings: Settings) -> str | None:
    """PostgreSQL keeps our tables beside the ledger's; SQLite has no schemas."""
    return None if settings.ledger_url.startswith("sqlite") else settings.ledger_schema


class Workload:
    """The flows, on one app."""

    def __init__(self, program: Program) -> None:
        self.app = program.app()
        schema = schema_of(self.app.settings)
        self._one_writer = schema is None  # SQLite: a pause inside a transaction would be everybody's
        self._now = f'"{schema}".ledger_time()' if schema else "ledger_time()"
        self._tables = tables(schema)
        self._insert = (
            f"INSERT INTO {self._tables['effects']} (record_id, flow, record_key, token, instance, at) "
            f"VALUES (:id, :flow, :key, :token, :instance, {self._now})"
        )
        self._second_url = program.second_url
        self._second: Engine | None = None
        self._opening = threading.Lock()
        self._add("fast", self.fast, concurrency=3)
        self._add("plain", self.plain, concurrency=2)
        self._add("slow", self.slow, concurrency=4)
        self._add("flaky", self.flaky, concurrency=1)
        self._add("elsewhere", self.elsewhere, concurrency=2)
        self._add("async", self.asynchronous, concurrency=2)
        self._add("hanging", self.hanging, concurrency=1, timeout=_HANG_SECONDS / 2)
        self._add("doomed", self.doomed, concurrency=1, max_attempts=DOOMED_ATTEMPTS)
        self._add("poison", self.poison, concurrency=1, max_deaths=POISON_DEATHS)
        self._add(TICK.flow, self.fast, concurrency=1)
        self._records = program.records
        self._enqueued = Position(program.folder, "enqueued")

    def _add(self, name: str, handler: Callable[[Any], Any], **policy: Any) -> None:
        lasting: dict[str, Any] = {"max_attempts": _MANY, "max_deaths": _MANY, "backoff": _SOON}
        self.app.flows[name] = Flow(name=name, handler=handler, **lasting | policy)

    # -- handlers ------------------------------------------------------------------------------------------

    def fast(self, record: Record) -> None:
        """One row, one commit."""
        with record.transaction() as tx:
            tx.execute(self._insert, self._effect(record))

    @staticmethod
    def plain(record: Record) -> dict[str, int]:
        """No effect but its result, which says under which token it was made."""
        return {"token": record.token}

    def slow(self, record: Record) -> None:
        """Long enough to be hit: it says that it has started, and sleeps before and inside its transaction."""
        record.heartbeat(progress=0.5)
        pause = _between(record, 0.02, 0.15)
        time.sleep(pause / 2)
        with record.transaction() as tx:
            tx.execute(self._insert, self._effect(record))
            if not self._one_writer:
                time.sleep(pause * 1.5)

    def flaky(self, record: Record) -> None:
        """Raises once or twice, after it has written: the roll-back has to be a real one."""
        with record.transaction() as tx:
            tx.execute(self._insert, self._effect(record))
            if record.attempt <= 1 + record.payload["draw"] % 2:
                raise ValueError("not yet")

    async def asynchronous(self, record: Record) -> None:
        await asyncio.sleep(_between(record, 0, 0.02))
        async with record.transaction() as tx:
            await tx.aexecute(self._insert, self._effect(record))

    def doomed(self, record: Record) -> None:
        """Fails until somebody has entered its cure; by then it is dead and has to be driven again."""
        with record.transaction() as tx:
            query = f"SELECT 1 FROM {self._tables['cures']} WHERE record_id = :id"
            if tx.execute(query, {"id": record.id}).first() is None:
                raise LookupError(f"no cure for {record.key}")
            tx.execute(self._insert, self._effect(record))

    def hanging(self, record: Record) -> None:
        """Beyond its timeout the first time; what it writes when it wakes must be refused."""
        if record.attempt == 1:
            time.sleep(_HANG_SECONDS)
        with record.transaction() as tx:
            tx.execute(self._insert, self._effect(record))

    def elsewhere(self, record: Record) -> dict[str, int]:
        """An effect in another database, through a processing log there: whoever finds the log's row does nothing."""
        with self._second_engine().begin() as connection:
            logged = connection.execute(
                text("INSERT INTO proof_log (flow, record_key) VALUES (:flow, :key) ON CONFLICT DO NOTHING"),
                {"flow": record.flow, "key": record.key},
            )
            if logged.rowcount:
                connection.execute(
                    text(
                        "INSERT INTO proof_effects (record_id, flow, record_key, token, instance) "
                        "VALUES (:id, :flow, :key, :token, :instance)"
                    ),
                    self._effect(record),
                )
        return {"token": record.token}

    @staticmethod
    def poison(_record: Record) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def _effect(record: Record) -> dict[str, Any]:
        return {
            "id": record.id, "flow": record.flow, "key": record.key, "token": record.token,
            "instance": record._holder.instance_id,  # noqa: SLF001
        }  # fmt: skip

    def _second_engine(self) -> Engine:
        with self._opening:
            if self._second is None:
                self._second = open_second(self._second_url)
            return self._second

    # -- the lock ------------------------------------------------------------------------------------------

    def keep_lock(self, stopping: threading.Event) -> None:
        """Takes the lock, appends to the fenced log while it holds it, gives it back; again and again."""
        insert = f"INSERT INTO {self._tables['fenced']} (token, pid, at) VALUES (:token, :pid, {self._now})"
        ttl = max(1.0, self.app.settings.lease_seconds)
        while not stopping.is_set():
            try:
                with self.app.lock(LOCK, ttl=ttl, wait=5, note="appends to the fenced log") as lease:
                    for _ in range(_LOCK_TURNS):
                        with lease.transaction() as tx:
                            tx.execute(insert, {"token": lease.token, "pid": os.getpid()})
                            if not self._one_writer:
                                stopping.wait(_LOCK_PAUSE)
                        if stopping.wait(_LOCK_PAUSE):
                            break
            except (LeaseLost, LockHeld, LedgerError, SQLAlchemyError) as error:
                logger.info("the lock: %s", error)
                stopping.wait(_LOCK_PAUSE)

    # -- the schedule --------------------------------------------------------------------------------------

    def keep_schedule(self, stopping: threading.Event) -> None:
        """A tick a second, from whoever is alive, for as long as records are enqueued."""
        scheduler = Scheduler(self.app.ledger, [TICK], self.app.locks.instance, self.app.enqueue)
        started = False
        while self._enqueued.read() < self._records and not stopping.wait(_LOCK_PAUSE):
            if not started:
                try:
                    scheduler.start()
                    started = True
                except LedgerError as error:
                    logger.info("the schedule: %s", error)
        scheduler.stop()

    # -- life ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """One worker, until a signal."""
        stopping = threading.Event()
        beside = [
            threading.Thread(target=target, args=(stopping,), name=name, daemon=True)
            for name, target in (("proof-lock", self.keep_lock), ("proof-schedule", self.keep_schedule))
        ]
        worker = self.app.worker()
        for thread in beside:
            thread.start()
        try:
            worker.run()
        finally:
            stopping.set()
            for thread in beside:
                thread.join(self.app.settings.lease_seconds)
            self.app.close()
            if self._second is not None:
                self._second.dispose()


def open_second(url: str) -> Engine:
    """The second database: another one on the same server, or another file."""
    dialect, parsed = parse_url(url)
    if dialect == "postgresql":
        return create_engine(parsed, pool_size=4, connect_args={"connect_timeout": 5})
    engine = create_engine(parsed, pool_size=4, connect_args={"timeout": 30, "check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")


def _between(record: Record, shortest: float, longest: float) -> float:
    return shortest + (longest - shortest) * float(record.payload["draw"] % 1000) / 1000
