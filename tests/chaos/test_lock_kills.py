"""Holders of locks, really stopped and killed; a ledger that is away; a client's clock that jumps."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from rowlock import LeaseLost, Rowlock, Settings, clock
from rowlock.databases.local_postgres import LocalPostgres
from rowlock.ledger.ledger import Ledger
from tests.chaos.test_kills import stop_between_writes
from tests.ledger.test_lock_protocol import check_history
from tests.support.ledgers import sql
from tests.support.waiting import eventually

TTL = 2.0
ROOT = Path(__file__).parents[2]


class Holders:
    """Processes on one ledger."""

    def __init__(self, settings):
        self.settings = settings
        self.app = Rowlock(settings=settings)
        with Ledger.open(settings) as ledger:
            ledger.schema.migrate()
            number = "bigserial" if ledger.dialect == "postgresql" else "INTEGER"
            sql(
                ledger,
                f"CREATE TABLE {{s}}fenced_log (id {number} PRIMARY KEY, name text, token bigint, pid bigint)",
            )
        self.processes: list[subprocess.Popen] = []

    def start(self, *arguments, ttl=TTL, **environment):
        environment = os.environ | {
            "ROWLOCK_LEDGER_URL": self.settings.ledger_url,
            "ROWLOCK_LEDGER_SCHEMA": self.settings.ledger_schema,
            "ROWLOCK_POLL_SECONDS": "0.2",
            "HOLDER_TTL": str(ttl),
            **environment,
        }
        command = [sys.executable, "-m", "tests.chaos.holders", *arguments]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return process

    def log(self):
        return [
            tuple(row)
            for row in sql(self.app.ledger, "SELECT name, token, pid FROM {s}fenced_log ORDER BY id")
        ]

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait(20)

    def close(self):
        for process in self.processes:
            self.end(process)
        self.app.close()


@pytest.fixture
def holders(settings_for):
    holders = Holders(settings_for(poll_seconds=0.2))
    yield holders
    holders.close()


def ask(process, command) -> str:
    process.stdin.write(f"{command}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def held(process) -> int:
    word, token = process.stdout.readline().split()
    assert word == "held"
    return int(token)


# -- stopped ---------------------------------------------------------------------------------------------------


def test_a_holder_stopped_beyond_its_ttl_is_refused_when_it_wakes(holders):
    stopped = holders.start("obey", "x")
    token = held(stopped)
    assert ask(stopped, "fence") == "committed"
    stop_between_writes(holders, stopped)
    with holders.app.lock("x", wait=60) as lease:
        assert lease.token > token, "a waiter took over meanwhile"
        stopped.send_signal(signal.SIGCONT)
        assert ask(stopped, "check").startswith("LeaseLost"), "its own clock tells it, before anything else"
        assert ask(stopped, "fence").startswith("LeaseLost"), "and the ledger refuses it"
        assert ask(stopped, "begin").startswith("LeaseLost")
        assert ask(stopped, "lost") == "lost True"
    assert holders.log() == [("x", token, stopped.pid)]


def test_a_transaction_that_slept_through_its_lease_is_not_committed(holders):
    if holders.app.ledger.dialect == "sqlite":
        pytest.skip("one writer at a time: an open transaction keeps everybody from the lease")
    stopped = holders.start("obey", "x")
    held(stopped)
    assert ask(stopped, "begin") == "begun"
    stopped.send_signal(signal.SIGSTOP)
    with holders.app.lock("x", wait=60):
        stopped.send_signal(signal.SIGCONT)
        assert ask(stopped, "commit").startswith("LeaseLost")
    assert holders.log() == []


def test_an_unfenced_loop_does_at_most_the_unit_it_was_in(holders):
    stopped = holders.start("loop", "x")
    held(stopped)
    for _ in range(5):
        assert stopped.stdout.readline().startswith("unit")
    stop_between_writes(holders, stopped)
    with holders.app.lock("x", wait=60):
        resumed = clock.monotonic()
        stopped.send_signal(signal.SIGCONT)
        units = [float(line.split()[1]) for line in stopped.stdout if line.startswith("unit")]
    assert stopped.wait(30) == 1, "LeaseLost ended it"
    assert len([unit for unit in units if unit > resumed]) <= 1


# -- killed ----------------------------------------------------------------------------------------------------


def test_holdings_never_overlap_whoever_is_killed_or_stopped(holders):
    names = ["a", "b"]
    running = [holders.start("contend", *names, ttl=1) for _ in range(4)]
    kills = stops = 0
    written = 0
    nemesis = random.Random(7)
    while kills < 8 or stops < 3:
        eventually(lambda least=written + 10: len(holders.log()) > least, "the fenced log grows")
        written = len(holders.log())
        victim = nemesis.choice(running)
        if stops < 3 and nemesis.random() < 0.4:
            stops += 1
            stop_between_writes(holders, victim)
            eventually(lambda one=victim: stopped_and_overtaken(holders, one), "somebody else goes on")
            victim.send_signal(signal.SIGCONT)
        else:
            kills += 1
            victim.kill()
            running[running.index(victim)] = holders.start("contend", *names, ttl=1)
    for process in running:
        process.kill()
        process.wait(20)
    assert check_history(holders.app.ledger) > 11
    check_log(holders)


def stopped_and_overtaken(holders, victim) -> bool:
    """Every lock has moved on to another process, or is free."""
    latest = {name: pid for name, _token, pid in holders.log()}
    query = "SELECT lock_name FROM {s}service_locks WHERE holder IS NOT NULL"
    held = {row[0] for row in sql(holders.app.ledger, query)}
    return all(latest.get(name) != victim.pid for name in held)


def check_log(holders) -> None:
    """What was written under the locks is in the order of the tokens, each of one process alone."""
    log = holders.log()
    owners: dict[tuple[str, int], int] = {}
    for name in {row[0] for row in log}:
        mine = [row for row in log if row[0] == name]
        for (_, before, _), (_, after, _) in pairwise(mine):
            assert before <= after, f"{name}: token {before} wrote before {after}"
        for _, token, pid in mine:
            assert owners.setdefault((name, token), pid) == pid
    query = (
        "SELECT lock_name, token FROM {s}lock_holdings UNION ALL "
        "SELECT lock_name, token FROM {s}service_locks WHERE holder IS NOT NULL"
    )
    assert set(owners) <= {tuple(row) for row in sql(holders.app.ledger, query)}


# -- the ledger is away ----------------------------------------------------------------------------------------


def test_a_ledger_away_for_longer_than_the_ttl_ends_every_holding_in_time(caplog):
    with LocalPostgres() as server:
        settings = Settings(ledger_url=server.url, poll_seconds=0.2)
        with Ledger.open(settings) as ledger:
            ledger.schema.migrate()
        with Rowlock(settings=settings) as app, Rowlock(settings=settings) as other:
            app.lock("sync", ttl=60).acquire().release()  # the rows are there
            lease = app.lock("sync", ttl=2).acquire()
            asyncio.run(lose_it_on_a_loop(app, server, lease))
            assert lease.lost.wait(30)
            assert lease.why_lost == "it could not be renewed in time"
            assert "'sync' (token 3) was lost: it could not be renewed in time" in caplog.text
            server.start()
            (row,) = other.ledger.locks.look("sync")
            left = lease.deadline - clock.monotonic()
            assert left < row.seconds_left, "the local deadline is the earlier one"
            for name in ("sync", "async"):
                with other.lock(name, wait=60) as taken, app.lock(f"{name} again", wait=60):
                    assert taken.token > 1
            with pytest.raises(LeaseLost):
                lease.release()


async def lose_it_on_a_loop(app, server, lease) -> None:
    with pytest.raises(LeaseLost, match="in time"):
        async with app.lock("async", ttl=2):
            await asyncio.to_thread(server.stop, immediate=True)
            assert lease.held
            await asyncio.sleep(3600)


# -- clocks ----------------------------------------------------------------------------------------------------

FAKETIME = next(iter(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1")), None)


@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")
def test_a_clients_clock_that_jumps_changes_nothing(holders, tmp_path):
    if holders.app.ledger.dialect == "sqlite":
        pytest.skip("the machine's clock is the ledger's clock there")
    offset = tmp_path / "offset"
    offset.write_text("+0")
    holder = holders.start(
        "obey",
        "x",
        ttl=3,
        LD_PRELOAD=str(FAKETIME),
        FAKETIME_TIMESTAMP_FILE=str(offset),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
    )
    token = held(holder)
    for hours in (10, -10, 1000, 0):
        offset.write_text(f"{hours * 3600:+d}")
        assert abs(float(ask(holder, "time")) - time.time() - hours * 3600) < 60, "its clock has jumped"
        assert ask(holder, "renewed") == "renewed"
        assert ask(holder, "fence") == "committed"
        assert holders.app.try_lock("x") is None
    assert {row[1] for row in holders.log()} == {token}


@pytest.mark.parametrize("kind", ["sqlite"])
def test_on_sqlite_a_jump_of_the_machines_clock_ends_leases_early_or_late_but_the_fence_holds(
    kind, make_app, monkeypatch
):
    """It is the ledger's clock there. Forwards: a holding ends early, and is refused. Backwards: a dead one's lasts."""
    app = make_app()
    other = make_app(on=app)
    jump = [0.0]
    monkeypatch.setattr(clock, "wall", lambda: time.time() + jump[0])
    lease = app.lock("x", ttl=3600).acquire()
    jump[0] = 7200.0
    with other.try_lock("x") as taken:
        assert taken.token > lease.token
        with pytest.raises(LeaseLost), app.ledger.engine.begin() as connection:
            lease.fence(connection)
    abandoned = other.lock("x", ttl=60).acquire()
    other.locks.keeper.drop(abandoned)  # as if its process had been killed
    jump[0] = 0.0
    assert app.ledger.locks.look("x")[0].seconds_left > 7000
    app.ledger.locks.force("x", 0, "the clock was set back")
    with app.try_lock("x") as again:
        assert again.token > abandoned.token
