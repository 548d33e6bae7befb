"""The ledger on SQLite: short steps under one write lock (BEGIN IMMEDIATE)."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import event

from rowlock import clock
from rowlock.databases.engine import SQLITE_BUSY_SECONDS
from rowlock.ledger.ledger import Ledger, LedgerConnection, check_open
from rowlock.ledger.rows import Held
from rowlock.ledger.sqlite_jobs import count_job, reopen_jobs
from rowlock.ledger.sqlite_locks import SqliteLocks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.engine import URL, Connection

    from rowlock.ledger.rows import Completion, Failure, Release, Wish
    from rowlock.settings import Settings

_SHORTEST_WAIT, _LONGEST_WAIT = 0.0005, 0.005


class SqliteLedger(Ledger):
    dialect: ClassVar[str] = "sqlite"
    single_statement_options: ClassVar[dict[str, Any]] = {"rowlock_single": True}
    transaction_options: ClassVar[dict[str, Any]] = {}

    def __init__(self, url: URL, settings: Settings, *, control: bool = False) -> None:
        super().__init__(url, settings, control=control)
        event.listen(self.engine, "begin", _begin_immediate)

    def _lock_table(self) -> SqliteLocks:
        return SqliteLocks(self)

    def is_schema_missing(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)

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
        if on is None:
            with self.transaction() as transaction:
                return self.enqueue(
                    transaction,
                    flow=flow,
                    keys=keys,
                    payloads=payloads,
                    priority=priority,
                    run_at=run_at,
                    batch=batch,
                    notify=notify,
                    job=job,
                )
        now = clock.wall()
        due = now if run_at is None else run_at.timestamp()
        common = {"flow": flow, "priority": priority, "batch": batch, "now": now, "run_at": due, "job": job}
        rows = [
            {"key": key, "payload": payload, **common} for key, payload in zip(keys, payloads, strict=True)
        ]
        known = on.one("flow_find", {"flow": flow})
        check_open(flow, known[1] if known else None)
        last = on.all("enqueue_last", {})
        if not on.many("enqueue_keys", rows):
            return []
        on.many("enqueue_records", rows)
        return [row[0] for row in on.all("enqueued", {"after": last[0][0] if last else 0, "batch": batch})]

    def exchange(
        self, holder: int, completions: Sequence[Completion], wishes: Sequence[Wish]
    ) -> tuple[set[int], list[Held]]:
        if not completions:
            # Idle workers look without the write lock, so that they do not stand in a busy one's way.
            wishes = [wish for wish in wishes if self.run("any_ready", flow=wish.flow)]
            if not wishes:
                return set(), []
        with self.transaction() as transaction:
            settled = _settle(transaction, "complete_history", [c._asdict() for c in completions])
            claimed = [
                Held._make(row)
                for wish in wishes
                for row in transaction.all(
                    "claim", {"flow": wish.flow, "limit": wish.limit, "holder": holder}
                )
            ]
        return settled, claimed

    def complete(self, on: LedgerConnection, *, id: int, token: int, result: str | None) -> bool:  # noqa: A002
        input_ = on.one("record_job", {"id": id})
        done = bool(_settle(on, "complete_history", [{"id": id, "token": token, "result": result}]))
        if done and input_ is not None:
            reused = bool((json.loads(result or "null") or {}).get("reused"))
            count_job(on, input_.job_id, done=1, reused=int(reused))
        return done

    def fail(self, holder: int | None, failures: Sequence[Failure]) -> set[int]:
        settled: set[int] = set()
        with self.transaction() as transaction:
            for failure in failures:
                params = failure._asdict() | {"holder": holder}
                if transaction.many("fail_log", [params]):
                    settled.add(failure.id)
                    transaction.many("fail_dead", [params])
                    if failure.final:
                        _count_dead(transaction, failure.id, failure.reason)
                        transaction.many("leave_queue", [params])
                    else:
                        transaction.many("fail_later", [params])
        return settled

    def release(self, holder: int | None, releases: Sequence[Release]) -> set[int]:
        with self.transaction() as transaction:
            transaction.many("release_log", [release._asdict() | {"holder": holder} for release in releases])
            return {row[0] for release in releases for row in transaction.all("release", release._asdict())}

    def start(self, tokens: Sequence[tuple[int, int]]) -> set[int]:
        with self.transaction() as transaction:
            return {id_ for id_, token in tokens if transaction.all("start", {"id": id_, "token": token})}

    def reread(self, tokens: dict[int, int]) -> dict[int, str]:
        return {id_: self.run_safely("reread", id=id_, token=token)[0].fate for id_, token in tokens.items()}

    def promote(self, limit: int) -> int:
        return len(self.run("promote", limit=limit))

    def takeover(self, limit: int) -> tuple[int, int]:
        returned = dead = 0
        with self.transaction() as transaction:
            for row in transaction.all("takeover_orphans", {"limit": limit}):
                params = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
                final = row.deaths >= row.max_deaths or (row.started and row.attempt >= row.max_attempts)
                transaction.many("takeover_log", [params])
                if final:
                    transaction.many("takeover_dead", [params])
                    _count_dead(transaction, row.id, "its workers died")
                    dead += transaction.many("leave_queue", [params])
                else:
                    returned += transaction.many("takeover_return", [params])
        return returned, dead

    def cancel(self, ids: Sequence[int], reason: str) -> list[int]:
        with self.transaction() as transaction:
            done = [id_ for id_ in ids if transaction.all("cancel_history", {"id": id_, "reason": reason})]
            inputs = [row for id_ in done if (row := transaction.one("record_job", {"id": id_}))]
            for job, cancelled in Counter(row.job_id for row in inputs).items():
                count_job(transaction, job, cancelled=cancelled)
            transaction.many("cancel_queue", [{"id": id_} for id_ in done])
        return done

    def hurry(self, ids: Sequence[int]) -> list[int]:
        with self.transaction() as transaction:
            return [id_ for id_ in ids if transaction.all("hurry", {"id": id_})]

    def redrive(self, ids: Sequence[int]) -> list[int]:
        with self.transaction() as transaction:
            back = [row for id_ in ids for row in transaction.all("redrive_queue", {"id": id_})]
            done = [row.id for row in back]
            reopen_jobs(transaction, back)
            transaction.many("redrive_log", [{"id": id_} for id_ in done])
            transaction.many("redrive_history", [{"id": id_} for id_ in done])
        return done

    def count_job(self, on: LedgerConnection, job: int, *, done: int, dead: int, cancelled: int) -> None:
        count_job(on, job, done=done, dead=dead, cancelled=cancelled)

    def prune(self, seconds: float, *, dead_too: bool, limit: int) -> int:
        with self.transaction() as transaction:
            old = transaction.all("prune_pick", {"seconds": seconds, "dead_too": dead_too, "limit": limit})
            rows = [{"id": row.id} for row in old]
            for name in ("prune_keys", "prune_attempts", "prune_history"):
                transaction.many(name, rows)
        return len(rows)

    def set_flow_state(self, flow: str, state: str, reason: str | None) -> bool:
        with self.transaction() as transaction:
            found = transaction.all("flow_state", {"flow": flow, "state": state, "reason": reason})
            transaction.all("breaker_forget", {"flow": flow})
        return bool(found)

    def wake(self, flow: str) -> None:
        """Nothing to do: workers see that the file changed."""


def _count_dead(on: LedgerConnection, id_: int, reason: str) -> None:
    input_ = on.one("record_job", {"id": id_})
    if input_ is not None:
        count_job(on, input_.job_id, dead=1, why=f"{input_.record_key}: {reason}")


def _begin_immediate(connection: Connection) -> None:
    # Single statements commit by themselves; a transaction takes the write lock before it reads, so that it
    # never has to be rolled back because somebody wrote in between.
    if connection.get_execution_options().get("rowlock_single"):
        return
    driver: Any = connection.connection.driver_connection
    # SQLite's own waiting sleeps for up to 100 ms at a time; with many writers that is most of the time.
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        pause, give_up = _SHORTEST_WAIT, clock.monotonic() + SQLITE_BUSY_SECONDS
        while True:
            try:
                driver.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or clock.monotonic() > give_up:
                    raise
                time.sleep(random.uniform(pause / 2, pause))
                pause = min(_LONGEST_WAIT, pause * 1.5)
    finally:
        driver.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_SECONDS * 1000}")


def _settle(on: LedgerConnection, into_history: str, rows: list[dict[str, Any]]) -> set[int]:
    """Moves records into the history; the ids whose token was right."""
    moved = on.many(into_history, rows)
    if moved == len(rows):
        on.many("leave_queue", rows)
        return {row["id"] for row in rows}
    # Some token was stale, which is rare: find out which, one by one.
    return {row["id"] for row in rows if on.many("leave_queue", [row])}
