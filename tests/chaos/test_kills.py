"""Real processes, really killed: nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from rowlock import Rowlock
from rowlock.ledger.ledger import Ledger
from tests.support.ledgers import find, sql
from tests.support.waiting import eventually

WORKER = """
import logging, sys
logging.basicConfig(level="WARNING")
from tests.chaos.flows import app
app.worker(sys.argv[1].split(","), until_empty="--until-empty" in sys.argv).run()
"""


class Fleet:
    """Worker processes on one ledger."""

    def __init__(self, settings):
        self.settings = settings
        self.app = Rowlock(settings=settings)
        with Ledger.open(settings) as ledger:
            ledger.schema.migrate()
        sql(self.app.ledger, "CREATE TABLE {s}effects (record_id bigint, token bigint, pid bigint)")
        for flow in ("effect", "poison", "patient"):
            deaths = 50 if flow == "effect" else 3
            self.app.ledger.run("flow_register", flow=flow, max_attempts=50, max_deaths=deaths)
        self.processes: list[subprocess.Popen] = []

    def start(self, flow, *options):
        environment = os.environ | {
            "ROWLOCK_LEDGER_URL": self.settings.ledger_url,
            "ROWLOCK_LEDGER_SCHEMA": self.settings.ledger_schema,
            "ROWLOCK_LEASE_SECONDS": str(self.settings.lease_seconds),
            "ROWLOCK_GRACE_SECONDS": str(self.settings.grace_seconds),
            "ROWLOCK_POLL_SECONDS": "0.2",
        }
        process = subprocess.Popen([sys.executable, "-c", WORKER, flow, *options], env=environment)
        self.processes.append(process)
        return process

    def effects(self):
        return sql(self.app.ledger, "SELECT count(*), count(DISTINCT record_id) FROM {s}effects")[0]

    def running(self, flow):
        return next(row.processing for row in self.app.ledger.run("flows") if row.flow_name == flow)

    def started(self):
        return sql(self.app.ledger, "SELECT count(*) FROM {s}processing_queue WHERE progress > 0")[0][0]

    def live(self):
        return sql(self.app.ledger, "SELECT count(*) FROM {s}processing_queue")[0][0]

    def status(self, record_id):
        return find(self.app.ledger, record_id).status

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(20)
        self.app.close()


@pytest.fixture
def fleet(settings_for):
    fleet = Fleet(settings_for(lease_seconds=1.5, grace_seconds=10))
    yield fleet
    fleet.close()


def test_killed_workers_lose_nothing_and_repeat_nothing(fleet):
    total = 1500
    fleet.app.enqueue("effect", [{"n": n} for n in range(total)], key=lambda p: p["n"])
    workers = [fleet.start("effect", "--until-empty") for _ in range(2)]
    for part in (200, 500, 800):
        eventually(lambda part=part: fleet.effects()[0] >= part, f"{part} effects")
        victim = workers.pop(0)
        victim.kill()
        victim.wait(20)
        workers.append(fleet.start("effect", "--until-empty"))
    for worker in workers:
        assert worker.wait(60) == 0
    assert fleet.effects() == (total, total)
    assert fleet.live() == 0


def stop_between_writes(fleet, process):
    """SQLite: a stopped process that holds the write lock would hold everybody; choose another moment then."""
    while True:
        process.send_signal(signal.SIGSTOP)
        if fleet.app.ledger.dialect != "sqlite":
            return
        try:
            with fleet.app.ledger.engine.connect() as connection:
                driver = connection.connection.driver_connection
                driver.execute("PRAGMA busy_timeout = 100")
                try:
                    driver.execute("BEGIN IMMEDIATE")
                    driver.execute("ROLLBACK")
                finally:
                    driver.execute("PRAGMA busy_timeout = 30000")
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
        else:
            return


def test_a_worker_stopped_beyond_its_lease_is_refused_when_it_wakes(fleet):
    records = fleet.app.enqueue("effect", [{"seconds": 0.3}] * 8).ids
    stopped = fleet.start("effect")
    eventually(lambda: fleet.running("effect") >= 4, "a claim")
    stop_between_writes(fleet, stopped)
    held = [
        row[0] for row in sql(fleet.app.ledger, "SELECT id FROM {s}processing_queue WHERE holder IS NOT NULL")
    ]
    assert held
    heir = fleet.start("effect", "--until-empty")
    assert heir.wait(60) == 0
    stopped.send_signal(signal.SIGCONT)
    eventually(
        lambda: sql(fleet.app.ledger, "SELECT sum(stale_refused) FROM {s}service_instances")[0][0] > 0,
        "a refusal",
    )
    stopped.terminate()
    assert stopped.wait(20) == 0
    assert fleet.effects() == (len(records), len(records))
    tokens = dict(sql(fleet.app.ledger, "SELECT record_id, token FROM {s}effects"))
    settled = dict(sql(fleet.app.ledger, "SELECT id, token FROM {s}processing_history"))
    assert tokens == settled


def test_a_poisonous_record_is_found_and_its_neighbours_live(fleet):
    innocent = fleet.app.enqueue("poison", [f"fine {n}" for n in range(60)]).ids
    [guilty] = fleet.app.enqueue("poison", ["poison"], priority=1).ids
    for _ in range(10):
        if fleet.start("poison", "--until-empty").wait(60) == 0:
            break
    assert find(fleet.app.ledger, guilty).reason == "its workers died 3 times"
    assert {fleet.status(record_id) for record_id in innocent} == {"completed"}


def test_sigterm_finishes_what_runs_and_hands_back_the_rest(fleet):
    ids = fleet.app.enqueue("patient", [0.5] * 6).ids
    worker = fleet.start("patient")
    eventually(lambda: fleet.started() == 2, "two handlers at work")
    worker.terminate()
    assert worker.wait(20) == 0
    statuses = [fleet.status(record_id) for record_id in ids]
    assert statuses.count("completed") >= 2
    assert set(statuses) <= {"completed", "pending"}
    attempts = sql(fleet.app.ledger, "SELECT attempt FROM {s}processing_queue")
    assert {row[0] for row in attempts} <= {0}


def test_a_second_signal_leaves_now_and_hands_back(fleet):
    ids = fleet.app.enqueue("patient", [3600, 3600]).ids
    worker = fleet.start("patient")
    eventually(lambda: fleet.started() == 2, "two handlers at work")
    worker.terminate()
    eventually(lambda: worker.poll() is None, "the first signal")
    worker.send_signal(signal.SIGINT)
    assert worker.wait(20) == 0
    assert [fleet.status(record_id) for record_id in ids] == ["pending", "pending"]
    assert sql(fleet.app.ledger, "SELECT max(attempt) FROM {s}processing_queue")[0][0] == 0
