"""The lookout: what the run can see in the ledger while it works, however often that goes away."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import text

from rowlock.errors import LedgerError, LedgerUnavailable
from rowlock.proof.workload import LOCK, schema_of, tables

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

_TRIES = 100
_PAUSE = 0.1
_REDRIVE_PAGE = 200


class Holding(NamedTuple):
    """A record in somebody's hands; `started` when its handler has said so."""

    id: int
    token: int
    instance: int
    started: bool


class View(NamedTuple):
    """What one process held at one moment of the ledger's clock."""

    at: float
    holdings: list[Holding]
    has_lock: bool

    @property
    def started(self) -> int:
        return sum(holding.started for holding in self.holdings)


class Lookout:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        schema = schema_of(ledger.settings)
        self._prefix = f'"{schema}".' if schema else ""
        self._cures = tables(schema)["cures"]
        self._seen_until = 0.0
        self._settled = 0
        self._counted_at = 0.0

    def query(self, sql: str, **params: Any) -> list[Any]:
        """Rows; asked again while the ledger is away."""
        for _ in range(_TRIES):
            try:
                return self._ask(sql, params)
            except LedgerUnavailable:
                time.sleep(_PAUSE)
        return self._ask(sql, params)

    def now(self) -> float:
        return float(self._ledger.now())

    def view(self, *pids: int) -> View:
        """What these processes hold, or (without any) everybody."""
        mine = f"AND i.pid IN ({', '.join(map(str, pids))})" if pids else ""
        rows = self.query(
            f"""SELECT q.id, q.token, q.holder, q.progress IS NOT NULL AS started
                FROM {self._prefix}processing_queue AS q JOIN {self._prefix}service_instances AS i ON i.id = q.holder
                WHERE q.holder IS NOT NULL {mine}"""
        )
        holdings = [Holding(row[0], row[1], row[2], bool(row[3])) for row in rows]
        return View(self.now(), holdings, len(pids) == 1 and self._has_lock(pids[0]))

    def at_work(self) -> set[int]:
        """The processes in which a handler has said that it started."""
        rows = self.query(
            f"""SELECT DISTINCT i.pid
                FROM {self._prefix}processing_queue AS q JOIN {self._prefix}service_instances AS i ON i.id = q.holder
                WHERE q.holder IS NOT NULL AND q.progress IS NOT NULL"""
        )
        return {row[0] for row in rows}

    def _has_lock(self, pid: int) -> bool:
        rows = self.query(
            f"""SELECT 1 FROM {self._prefix}service_locks AS l JOIN {self._prefix}service_instances AS i
                ON i.id = l.holder WHERE l.lock_name = :lock AND i.pid = :pid""",
            lock=LOCK, pid=pid,
        )  # fmt: skip
        return bool(rows)

    def retaken(self, holdings: list[Holding]) -> bool:
        """True when another instance is at work on one of these: its handler has started there too, if it had before."""
        begun = {holding.id: holding for holding in holdings if holding.started}
        before = begun or {holding.id: holding for holding in holdings}
        ids = ", ".join(map(str, before)) or "0"
        rows = self.query(
            f"""SELECT id, holder, progress IS NOT NULL FROM {self._prefix}processing_queue
                WHERE id IN ({ids}) AND holder IS NOT NULL"""
        )
        return any(holder != before[id_].instance and (started or not begun) for id_, holder, started in rows)

    def live(self) -> int:
        return int(self.query(f"SELECT count(*) FROM {self._prefix}processing_queue")[0][0])

    def settled(self) -> int:
        """Records that have left the queue; counted by and by, since the history is long."""
        if self._ledger.dialect == "sqlite":
            return int(self.query(f"SELECT count(*) FROM {self._prefix}processing_history")[0][0])
        [[until, count]] = self.query(
            f"""SELECT max(settled_at), count(*) FROM {self._prefix}processing_history
                WHERE settled_at > to_timestamp(:since)""",
            since=self._seen_until,
        )
        if until is not None:
            self._seen_until = until.timestamp()
            self._settled += count
        return self._settled

    def writable(self) -> bool:
        """SQLite: false while somebody, stopped perhaps, is inside the one write lock."""
        if self._ledger.dialect != "sqlite":
            return True
        with self._ledger.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA busy_timeout = 200")
            try:
                driver.execute("BEGIN IMMEDIATE")
                driver.execute("ROLLBACK")
            except self._ledger._driver_error:  # noqa: SLF001
                return False
            finally:
                driver.execute("PRAGMA busy_timeout = 30000")
        return True

    def redrive_the_doomed(self) -> int:
        """Enters the cures of dead letters, and drives them again; how many. Safe to do twice."""
        with suppress(LedgerError):  # the next time, then
            rows = self._ledger.run_safely(
                "dead_ids", flow="doomed", fingerprint=None, after=0, limit=_REDRIVE_PAGE
            )
            ids = [row.id for row in rows]
            if ids:
                with self._ledger.translated(), self._ledger.engine.begin() as connection:
                    connection.execute(
                        text(f"INSERT INTO {self._cures} VALUES (:id)"),
                        [{"id": id_} for id_ in ids],
                    )
                return len(self._ledger.redrive(ids))
        return 0

    def _ask(self, sql: str, params: dict[str, Any]) -> list[Any]:
        # Not inside a transaction: on SQLite that would wait for the write lock, which a stopped process may have.
        with self._ledger.translated(), self._ledger._single.connect() as connection:  # noqa: SLF001
            return list(connection.execute(text(sql), params).fetchall())
