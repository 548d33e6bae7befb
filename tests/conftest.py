"""Fixtures: every ledger test runs on real SQLite and on real PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowlock import Rowlock
from rowlock.databases.local_postgres import LocalPostgres
from rowlock.errors import ConfigurationError
from rowlock.jobs.local_s3 import LocalS3
from rowlock.ledger.ledger import Ledger
from rowlock.ledger.ledger_clock import LedgerClock
from tests.support.ledgers import make_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlock.settings import Settings


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """One private server for the session; tests have a schema each."""
    with LocalPostgres() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[LocalS3]:
    """One private S3 server for the session; tests have a bucket each."""
    try:
        server = LocalS3().__enter__()
    except (ConfigurationError, OSError) as error:
        pytest.skip(f"no S3 server starts here: {error}")
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def settings_for(kind: str, tmp_path, request: pytest.FixtureRequest) -> Callable[..., Settings]:
    """Settings for a fresh ledger; overrides as keywords."""
    server = request.getfixturevalue("postgres").url if kind == "postgresql" else None
    return lambda **overrides: make_settings(kind, tmp_path, server, **overrides)


@pytest.fixture
def settings(settings_for) -> Settings:
    return settings_for(lease_seconds=30)


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    """An empty, migrated ledger."""
    with Ledger.open(settings) as opened:
        opened.schema.migrate()
        yield opened


@pytest.fixture
def ledger_clock(ledger: Ledger) -> Iterator[LedgerClock]:
    with LedgerClock(ledger) as clock:
        yield clock


@pytest.fixture
def make_app(settings_for) -> Iterator[Callable[..., Rowlock]]:
    """Apps on fresh ledgers, or on the one that another app has."""
    apps: list[Rowlock] = []

    def make(on: Rowlock | None = None, **overrides) -> Rowlock:
        settings = on.settings if on else settings_for(**{"poll_seconds": 0.2, **overrides})
        with Ledger.open(settings) as fresh:
            fresh.schema.migrate()
        apps.append(Rowlock(settings=settings))
        return apps[-1]

    yield make
    for app in apps:
        app.close()


@pytest.fixture
def app(make_app) -> Rowlock:
    return make_app()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWLOCK_LEDGER_URL", "ROWLOCK_CONFIG", "ROWLOCK_LEDGER_SCHEMA"):
        monkeypatch.delenv(name, raising=False)
