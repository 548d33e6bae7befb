"""The demo: three workers, one killed, one stopped beyond its lease, and a count at the end."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rowlock.app import Rowlock
from rowlock.clock import monotonic
from rowlock.errors import RowlockError
from rowlock.proof import surveys
from rowlock.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEASE_SECONDS = 2.0
WORKERS = 3
_LOOK_SECONDS = 0.05
_MOMENT_SECONDS = 0.005
_PATIENCE_SECONDS = 120.0


class DemoFailed(RowlockError):
    """The demo could not be carried through: see the workers' logs in its folder."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What the demo counted at its end."""

    accepted: int
    completed: int
    dead: int
    redriven: int
    lost: int
    duplicated: int
    takeovers: int
    stale_refused: int

    @property
    def good(self) -> bool:
        return self.lost == 0 and self.duplicated == 0 and self.accepted == self.completed + self.dead

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the display shows while it runs."""

    settled: int
    dead: int
    live: int


class Demo:
    """Plays the scenes in order. `tell` gets one sentence for each thing that happens, `show` the progress."""

    def __init__(
        self,
        folder: Path,
        records: int,
        tell: Callable[[str], None] = lambda _text: None,
        show: Callable[[Standing], None] = lambda _standing: None,
    ) -> None:
        self.folder = folder
        self.records = records
        self._tell = tell
        self._show = show
        self._settings = Settings(
            ledger_url=f"sqlite:///{folder / 'rowlock.db'}", lease_seconds=LEASE_SECONDS, poll_seconds=0.2
        )
        self._app = Rowlock(settings=self._settings)
        self._app.flows.update(surveys.app.flows)
        self._workers: list[subprocess.Popen[bytes]] = []

    def run(self) -> Tally:
        try:
            accepted = self._prepare()
            self._start_workers()
            self._kill_one(self._workers[0], at=accepted // 6)
            self._stop_one(self._workers[1], at=accepted // 3)
            self._until_nothing_is_live()
            redriven = self._redrive()
            self._until_nothing_is_live()
            self._end_workers()
            return self._count(accepted, redriven)
        finally:
            for worker in self._workers:
                if worker.poll() is None:
                    worker.kill()
                    worker.wait()
            self._app.close()

    # -- scenes ------------------------------------------------------------------------------------------

    def _prepare(self) -> int:
        with self._app.ledger.transaction() as transaction:
            for table in surveys.TABLES:
                transaction.connection.exec_driver_sql(table)
            transaction.connection.exec_driver_sql(
                "INSERT INTO customers VALUES (?)", [(f"CUST-{number:03d}",) for number in range(100)]
            )
        first = self._enqueue()
        self._tell(f"enqueued {first:,} surveys")
        again = self._enqueue()
        self._tell(f"enqueued the same {self.records:,} again: {again} accepted, every key is known")
        if again:
            raise DemoFailed(f"{again} known keys were accepted a second time")
        return first

    def _enqueue(self) -> int:
        payloads = surveys.sample_surveys(self.records)
        return self._app.enqueue(surveys.FLOW, payloads, key=lambda survey: str(survey["survey_id"])).accepted

    def _start_workers(self) -> None:
        environment = os.environ | {
            "ROWLOCK_LEDGER_URL": self._settings.ledger_url,
            "ROWLOCK_LEASE_SECONDS": str(LEASE_SECONDS),
            "ROWLOCK_POLL_SECONDS": "0.2",
        }
        for number in range(1, WORKERS + 1):
            with (self.folder / f"worker-{number}.log").open("wb") as log:
                self._workers.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "rowlock.proof.surveys"],
                        env=environment,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        self._wait(lambda: len(self._instances()) == WORKERS, "three workers at work")
        self._tell(
            f"started {WORKERS} workers (pids {', '.join(str(worker.pid) for worker in self._workers)})"
        )

    def _kill_one(self, worker: subprocess.Popen[bytes], at: int) -> None:
        self._wait(lambda: self._standing().settled >= at, "the first sixth")
        worker.kill()
        worker.wait()
        self._tell(f"SIGKILL: worker {worker.pid} is gone in the middle of its work")

    def _stop_one(self, worker: subprocess.Popen[bytes], at: int) -> None:
        """Stops a worker that holds records, and wakes it when another has taken them: a zombie."""
        self._wait(lambda: self._standing().settled >= at, "the first third")
        while True:
            self._wait(lambda: bool(self._held(worker.pid)), "a claim")
            before = self._held(worker.pid)
            time.sleep(_MOMENT_SECONDS)
            worker.send_signal(signal.SIGSTOP)
            held = self._held(worker.pid)
            # What it held a moment ago has reached its handlers: they will wake in the middle of their work.
            if before & held and self._others_can_write():
                break
            worker.send_signal(signal.SIGCONT)
        self._tell(
            f"SIGSTOP: worker {worker.pid} sleeps on {len(held)} records, beyond its lease of {LEASE_SECONDS:g} s"
        )
        self._wait(lambda: worker.pid not in self._instances() and not self._held(worker.pid), "a takeover")
        self._tell("its records were taken over by the third worker")
        worker.send_signal(signal.SIGCONT)
        self._tell(f"SIGCONT: worker {worker.pid} wakes as a zombie, is refused, and starts anew")

    def _others_can_write(self) -> bool:
        """A process stopped inside SQLite's write lock would stop everybody; no lease can help there."""
        with sqlite3.connect(self.folder / "rowlock.db", timeout=0.2, isolation_level=None) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            finally:
                connection.rollback()
        connection.close()
        return True

    def _redrive(self) -> int:
        letters = self._app.dead_letters
        for group in letters.groups():
            self._tell(f"dead letters: {group['records']} of {group['fingerprint']} ({group['example']})")
        with self._app.ledger.transaction() as transaction:
            transaction.connection.exec_driver_sql(
                "INSERT INTO customers VALUES (?)", (surveys.UNKNOWN_CUSTOMER,)
            )
        redriven = letters.redrive(surveys.FLOW)
        self._tell(f"entered the missing customer and drove {redriven} dead letters again")
        return redriven

    def _end_workers(self) -> None:
        for worker in self._workers[1:]:
            worker.terminate()
        for worker in self._workers[1:]:
            if worker.wait(timeout=30) != 0:
                raise DemoFailed(
                    f"worker {worker.pid} ended with code {worker.returncode}; see {self.folder}"
                )

    def _count(self, accepted: int, redriven: int) -> Tally:
        one = self._one
        completed = one("SELECT count(*) FROM processing_history WHERE status = 'completed'")
        dead = one("SELECT count(*) FROM processing_history WHERE status = 'dead'")
        scored = one("SELECT count(DISTINCT survey_id) FROM processed_surveys")
        totals = self._app.ledger.run("totals")[0]
        return Tally(
            accepted=accepted,
            completed=completed,
            dead=dead,
            redriven=redriven,
            lost=accepted - dead - scored,
            duplicated=one("SELECT count(*) FROM processed_surveys") - scored,
            takeovers=totals.takeovers,
            stale_refused=totals.stale_refused,
        )

    # -- looking on ----------------------------------------------------------------------------------------

    def _until_nothing_is_live(self) -> None:
        self._wait(lambda: self._standing().live == 0, "the end of the queue")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        give_up = monotonic() + _PATIENCE_SECONDS
        while not condition():
            self._show(self._standing())
            self._check_workers()
            if monotonic() > give_up:
                raise DemoFailed(
                    f"waited {_PATIENCE_SECONDS:g} s for {what}; the workers' logs are in {self.folder}"
                )
            time.sleep(_LOOK_SECONDS)

    def _check_workers(self) -> None:
        for worker in self._workers:
            code = worker.poll()
            if code is not None and code != -signal.SIGKILL:
                raise DemoFailed(f"worker {worker.pid} ended with code {code}; its log is in {self.folder}")

    def _standing(self) -> Standing:
        [row] = self._app.ledger.run("flows")
        live = row.ready + row.waiting + row.processing + row.retry_wait
        return Standing(settled=row.completed_last_hour + row.dead, dead=row.dead, live=live)

    def _instances(self) -> set[int]:
        rows = self._app.ledger.run("instances", everyone=False, limit=100)
        return {row.pid for row in rows if row.state in ("active", "suspect", "draining")}

    def _held(self, pid: int) -> set[int]:
        rows = self._app.ledger.run("instances", everyone=True, limit=100)
        mine = [row.id for row in rows if row.pid == pid and row.holds]
        return {record.id for instance in mine for record in self._app.ledger.held(instance)}

    def _one(self, query: str) -> int:
        with self._app.ledger.engine.connect() as connection:
            return int(connection.exec_driver_sql(query).scalar() or 0)
