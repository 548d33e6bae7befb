"""The ledger on PostgreSQL: every operation is one statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rowlock.errors import LedgerUnavailable
from rowlock.ledger.ledger import Ledger, LedgerConnection, Row, check_open, chunks
from rowlock.ledger.postgresql_locks import PostgresqlLocks
from rowlock.ledger.rows import Held

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rowlock.ledger.rows import Completion, Failure, Release, Wish

# Arrays of this many rows keep a statement's memory small and its plan good.
_CHUNK = 5000


class PostgresqlLedger(Ledger):
    dialect: ClassVar[str] = "postgresql"
    single_statement_options: ClassVar[dict[str, Any]] = {}  # its connections commit by themselves
    transaction_options: ClassVar[dict[str, Any]] = {"isolation_level": "READ COMMITTED"}

    def _lock_table(self) -> PostgresqlLocks:
        return PostgresqlLocks(self)

    def is_schema_missing(self, error: BaseException) -> bool:
        # undefined table, schema, function
        return getattr(error, "sqlstate", None) in {"42P01", "3F000", "42883"}

    def enqueue(
        self,
        on: LedgerConnection | None,
        *,
        flow: str,
        keys: Sequence[str],
        payloads: Sequence[str],
        priority: int,
        run_at: datetime | None,
        batch: int,
        notify: bool,
        job: int | None = None,
    ) -> list[int]:
        common = {
            "flow": flow, "priority": priority, "run_at": run_at, "batch": batch, "notify": notify, "job": job,
        }  # fmt: skip
        pieces = [
            {"keys": k, "payloads": p, "channel": self.channel, **common}
            for k, p in zip(chunks(list(keys), _CHUNK), chunks(list(payloads), _CHUNK), strict=True)
        ]
        if on is not None:
            return [id_ for piece in pieces for id_ in self._insert(on, piece)]
        try:
            return self._insert_pieces(pieces)
        except LedgerUnavailable:
            # The reply may have been lost after the commit. Keys carry the batch that took them, so the
            # second try inserts nothing twice, and what the first one took is read back.
            self._insert_pieces(pieces)
            return self._taken_by(flow, keys, batch)

    def _insert_pieces(self, pieces: list[dict[str, Any]]) -> list[int]:
        if len(pieces) == 1:
            return _accepted(self.run("enqueue", **pieces[0]), pieces[0]["flow"])
        with self.transaction() as transaction:
            driver: Any = transaction.connection.connection.driver_connection
            # One commit, and no waiting in between: the next piece is on its way while the server has this one.
            with driver.pipeline():
                sent = [driver.execute(self.statements["enqueue"], piece) for piece in pieces]
            return [id_ for cursor in sent for id_ in _accepted(cursor.fetchall(), pieces[0]["flow"])]

    @staticmethod
    def _insert(on: LedgerConnection, piece: dict[str, Any]) -> list[int]:
        return _accepted(on.all("enqueue", piece), piece["flow"])

    def _taken_by(self, flow: str, keys: Sequence[str], batch: int) -> list[int]:
        found = [
            row.id
            for piece in chunks(list(keys), _CHUNK)
            for row in self.run_safely("enqueued_before", flow=flow, keys=piece, batch=batch)
        ]
        return sorted(found)

    def exchange(
        self, holder: int, completions: Sequence[Completion], wishes: Sequence[Wish]
    ) -> tuple[set[int], list[Held]]:
        flows, limits, ranks, afters = _columns(wishes, 4)
        claim = {"flows": flows, "limits": limits, "ranks": ranks, "afters": afters, "holder": holder}
        if not completions:
            return set(), [Held._make(row) for row in self.run("claim", **claim)]
        ids, tokens, results = _columns(completions, 3)
        rows = self.run("exchange", ids=ids, tokens=tokens, results=results, **claim)
        settled = {id_ for row in rows if row[0] for id_ in row[0]}
        return settled, [Held._make(row[1:]) for row in rows if row[1] is not None]

    def complete(self, on: LedgerConnection, *, id: int, token: int, result: str | None) -> bool:  # noqa: A002
        lease_ms = int(self.settings.lease_seconds * 1000)
        params = {"id": id, "token": token, "result": result, "lease_ms": lease_ms}
        return bool(on.all("complete", params))

    def fail(self, holder: int | None, failures: Sequence[Failure]) -> set[int]:
        names = (
            "ids", "tokens", "final", "delays", "reasons", "outcomes", "error_types", "messages",
            "tracebacks", "fingerprints", "deaths",
        )  # fmt: skip
        columns = dict(zip(names, _columns(failures, len(names)), strict=True))
        return {row[0] for row in self.run("fail", holder=holder, **columns)}

    def release(self, holder: int | None, releases: Sequence[Release]) -> set[int]:
        ids, tokens, delays, reasons = _columns(releases, 4)
        rows = self.run("release", holder=holder, ids=ids, tokens=tokens, delays=delays, reasons=reasons)
        return {row[0] for row in rows}

    def start(self, tokens: Sequence[tuple[int, int]]) -> set[int]:
        ids, numbers = _columns(tokens, 2)
        return {row[0] for row in self.run_safely("start", ids=ids, tokens=numbers)}

    def reread(self, tokens: dict[int, int]) -> dict[int, str]:
        rows = self.run_safely("reread", ids=list(tokens), tokens=list(tokens.values()))
        return {row.id: row.fate for row in rows}

    def promote(self, limit: int) -> int:
        return sum(row.records for row in self.run_safely("promote", limit=limit, channel=self.channel))

    def takeover(self, limit: int) -> tuple[int, int]:
        rows = self.run("takeover", limit=limit, channel=self.channel)
        returned = sum(row.records for row in rows if row.fate == "returned")
        return returned, sum(row.records for row in rows) - returned

    def cancel(self, ids: Sequence[int], reason: str) -> list[int]:
        return [row.id for row in self.run("cancel", ids=list(ids), reason=reason)]

    def hurry(self, ids: Sequence[int]) -> list[int]:
        return [row.id for row in self.run("hurry", ids=list(ids), channel=self.channel)]

    def redrive(self, ids: Sequence[int]) -> list[int]:
        return [row.id for row in self.run("redrive", ids=list(ids), channel=self.channel)]

    def count_job(self, on: LedgerConnection, job: int, *, done: int, dead: int, cancelled: int) -> None:
        on.all("job_adjust", {"job": job, "done": done, "dead": dead, "cancelled": cancelled, "why": None})

    def prune(self, seconds: float, *, dead_too: bool, limit: int) -> int:
        return int(self.run("prune_history", seconds=seconds, dead_too=dead_too, limit=limit)[0].records)

    def set_flow_state(self, flow: str, state: str, reason: str | None) -> bool:
        with self.transaction() as transaction:
            params = {"flow": flow, "state": state, "reason": reason, "channel": self.channel}
            found = transaction.all("flow_state", params)
            transaction.all("breaker_forget", params)
        return bool(found)

    def wake(self, flow: str) -> None:
        self.run_safely("notify", flow=flow, channel=self.channel)


def _accepted(rows: list[Row], flow: str) -> list[int]:
    ids, state, _woken = rows[0]
    check_open(flow, state)
    return ids or []


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows to columns: PostgreSQL takes arrays."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
