"""The server's own fixtures: an interface in this process, tokens, and real server processes."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from rowlock.ledger.ledger_clock import LedgerClock
from rowlock.server import access, readiness
from rowlock.server.api import create_api
from rowlock.server.tokens import Role, Tokens
from tests.server import samples
from tests.server.process import ServerProcess


def client_of(api, **options) -> TestClient:
    """A caller on this machine, who calls it by its name."""
    return TestClient(api, **{"base_url": "http://localhost:8080", "client": ("127.0.0.1", 50000), **options})


@pytest.fixture
def api(app):
    """Our routes, and some that only tests have: with bodies, with every role, and with errors."""
    return create_api(app, routers=[samples.router])


@pytest.fixture
def client(api):
    with client_of(api) as client:
        yield client


@pytest.fixture
def now(monkeypatch):
    """Tokens and readiness are read anew for each request."""
    monkeypatch.setattr(access, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0.0)


@pytest.fixture
def bearer(app):
    """Authorization headers: one for each role."""
    tokens = Tokens(app.ledger)
    return {role: {"Authorization": f"Bearer {tokens.create(role, role).secret}"} for role in Role}


@pytest.fixture
def app_clock(app):
    """The clock of the app's ledger."""
    with LedgerClock(app.ledger) as clock:
        yield clock


@pytest.fixture
def start_server():
    """Starts `rowlock serve …` on a free port, with these settings."""
    started = []

    def start(settings, *arguments, **options) -> ServerProcess:
        started.append(ServerProcess(settings, *arguments, **options))
        return started[-1]

    yield start
    for process in started:
        process.end()
