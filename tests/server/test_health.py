"""`/health`: a server lives without its ledger, and is ready only with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rowlock import Rowlock, Settings
from rowlock.databases.local_postgres import LocalPostgres
from rowlock.ledger.ledger import Ledger
from rowlock.server import access, readiness
from rowlock.server.api import create_api
from rowlock.server.tokens import Role
from tests.server.conftest import client_of
from tests.support.ledgers import sql
from tests.support.waiting import eventually


def test_a_server_is_an_instance_that_lives_and_is_ready(client, app, bearer):
    assert client.get("/health/live").json() == {"status": "live"}
    me = app.locks.instance.id
    assert client.get("/health/ready").json() == {"status": "ready"}
    assert client.get("/health/instances", headers=bearer[Role.READ]).json()["server"] == {
        "instance": me,
        "schema_version": app.ledger.schema.latest,
        "access": "token",
    }
    for path in ("/health/instances", "/instances"):
        [found] = client.get(path, headers=bearer[Role.READ]).json()["instances"]
        assert (found["id"], found["roles"], found["state"]) == (me, "server", "active")


def test_it_says_that_it_is_open(client):
    assert client.get("/health/instances").json()["server"]["access"] == "open"


def test_however_many_ask_the_ledger_is_asked_once_a_second(client, app, monkeypatch):
    asked = []
    check = app.ledger.schema.check
    monkeypatch.setattr(app.ledger.schema, "check", lambda: (asked.append(1), check()))
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 1000.0)
    for _ in range(5):
        assert client.get("/health/ready").status_code == 200
    assert len(asked) == 1
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0.0)
    assert client.get("/health/ready").status_code == 200
    assert len(asked) == 2


def test_tables_that_do_not_fit_are_not_ready(client, app):
    sql(app.ledger, "INSERT INTO {s}ledger_version VALUES (9999, 'future', 'now')")
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:rowlock:problem:schema-mismatch")


def test_a_server_that_drains_is_not_ready(client, app):
    app.ledger.run("instance_drain", id=app.locks.instance.id)
    app.locks.instance.beat()
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert "drains" in answer.json()["detail"]
    assert client.get("/health/live").status_code == 200
    assert client.get("/flows").status_code == 200


def test_a_heartbeat_that_died_is_not_life(client, app):
    app.locks.instance._stopping.set()
    app.locks.instance._wake.set()
    eventually(lambda: not app.locks.instance.beating)
    answer = client.get("/health/live")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")


@pytest.fixture
def server():
    with LocalPostgres() as own:
        yield own


@pytest.fixture
def outlying(server):
    """A client of an app on a server of its own."""
    settings = Settings(ledger_url=server.url)
    with Ledger.open(settings) as ledger:
        ledger.schema.migrate()
    with Rowlock(settings=settings) as app, client_of(create_api(app)) as client:
        yield client


def statuses(client):
    paths = ("/health/live", "/health/ready", "/health/instances", "/flows", "/metrics")
    return {path: client.get(path).status_code for path in paths}


@pytest.mark.usefixtures("now")
def test_without_its_ledger_a_server_lives_and_is_not_ready(outlying, server):
    assert set(statuses(outlying).values()) == {200}
    server.stop(immediate=True)
    found = statuses(outlying)
    assert found.pop("/health/live") == 200
    assert set(found.values()) == {503}
    answer = outlying.get("/health/ready")
    assert answer.headers["content-type"] == "application/problem+json"
    assert str(server.port) not in answer.text
    server.start()
    eventually(lambda: set(statuses(outlying).values()) == {200}, "readiness after the restart")


@pytest.mark.usefixtures("now")
def test_a_ledger_that_does_not_answer_keeps_nobody_waiting(outlying, server, monkeypatch):
    monkeypatch.setattr(access, "_READ_SECONDS", 0.2)
    stopped = family(server._server.pid)
    tell(stopped, signal.SIGSTOP)
    try:
        assert outlying.get("/health/live").status_code == 200
        assert outlying.get("/health/ready").status_code == 503
    finally:
        tell(stopped, signal.SIGCONT)
    # The read that nobody waited for ends now, and gives its connection back before the app is closed.
    pool = outlying.app.state.rowlock.ledger.engine.pool
    eventually(lambda: pool.checkedout() == 0, "the end of the read")


def family(parent: int) -> list[int]:
    """The server and its backends, each of which has a process group of its own."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *map(int, children)]


def tell(processes: list[int], number: int) -> None:
    for process in processes:
        os.kill(process, number)
