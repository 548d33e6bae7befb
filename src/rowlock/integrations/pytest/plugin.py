"""The pytest plugin: options, a marker and fixtures. Whatever is heavy is imported by the fixture that needs it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rowlock.app import Rowlock
    from rowlock.integrations.pytest.crash_points import CrashPoints
    from rowlock.integrations.pytest.running import RunUntilIdle
    from rowlock.integrations.pytest.throw_away import ThrowAwayLedger
    from rowlock.ledger.ledger_clock import LedgerClock

_WHAT = "sqlite, postgresql (a private server), or the URL of a PostgreSQL server; several: each test runs on each"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("rowlock").addoption(
        "--rowlock-ledger", metavar="KINDS", help=f"where throw-away ledgers live: {_WHAT}"
    )
    parser.addini(
        "rowlock_ledger", f"where throw-away ledgers live: {_WHAT}", type="args", default=["sqlite"]
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"rowlock_ledger(*kinds): where this test's throw-away ledger lives: {_WHAT}"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rowlock_ledger" in metafunc.fixturenames:
        kinds = _kinds(metafunc.definition)
        if len(kinds) > 1:  # one alone would only make the test's name longer
            metafunc.parametrize(
                "rowlock_ledger", kinds, indirect=True, ids=[kind.split(":")[0] for kind in kinds]
            )


def _kinds(node: pytest.Item) -> list[str]:
    """The nearest marker decides, then the command line, then the ini file."""
    marker = node.get_closest_marker("rowlock_ledger")
    if marker is not None:
        return list(marker.args)
    given: str | None = node.config.getoption("--rowlock-ledger")
    return given.replace(",", " ").split() if given else list(node.config.getini("rowlock_ledger"))


@pytest.fixture(scope="session")
def _rowlock_server() -> Iterator[Callable[[], str]]:
    """The URL of a private PostgreSQL server, started when the first test asks, for all of the session."""
    from contextlib import ExitStack  # noqa: PLC0415
    from functools import cache  # noqa: PLC0415

    with ExitStack() as running:

        @cache
        def url() -> str:
            from rowlock.databases.local_postgres import LocalPostgres  # noqa: PLC0415

            return running.enter_context(LocalPostgres()).url

        yield url


@pytest.fixture
def rowlock_ledger(
    request: pytest.FixtureRequest, tmp_path: Path, _rowlock_server: Callable[[], str]
) -> Iterator[ThrowAwayLedger]:
    """An empty ledger in a database of its own; gone after the test."""
    from rowlock.integrations.pytest.throw_away import ThrowAwayLedger, why_no_postgresql  # noqa: PLC0415

    kind: str = getattr(request, "param", None) or _kinds(request.node)[0]
    if kind == "sqlite":
        server = None
    elif kind == "postgresql":
        if reason := why_no_postgresql():
            pytest.skip(reason)
        server = _rowlock_server()
    elif kind.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        server = kind
    else:
        pytest.fail(f"rowlock_ledger: {kind.partition(':')[0]!r} is not {_WHAT}", pytrace=False)
    with ThrowAwayLedger(tmp_path, server) as ledger:
        yield ledger


@pytest.fixture
def rowlock_app(rowlock_ledger: ThrowAwayLedger) -> Callable[[Rowlock], Rowlock]:
    """`rowlock_app(app)`: points your own app at the throw-away ledger until the test ends, and returns it."""
    return rowlock_ledger.lend


@pytest.fixture
def rowlock_clock(rowlock_ledger: ThrowAwayLedger) -> LedgerClock:
    """`rowlock_clock.advance(seconds)`: retries become due, leases run out, and nobody sleeps."""
    return rowlock_ledger.clock


@pytest.fixture
def run_until_idle(rowlock_ledger: ThrowAwayLedger, request: pytest.FixtureRequest) -> RunUntilIdle:
    """`run_until_idle(app)`: a real worker, until nothing is ready."""
    from rowlock.integrations.pytest.running import RunUntilIdle  # noqa: PLC0415

    node: Any = request.node
    return RunUntilIdle(
        rowlock_ledger, lambda text: node.add_report_section("call", "rowlock: attempts that failed", text)
    )


@pytest.fixture
def crash_points(rowlock_ledger: ThrowAwayLedger, tmp_path: Path) -> CrashPoints:
    """`crash_points(app, flow, payload, effects=…)`: kills the handler at every commit, and counts its effects."""
    from rowlock.integrations.pytest.crash_points import CrashPoints  # noqa: PLC0415

    if not hasattr(os, "fork"):
        pytest.skip("crash_points kills forked processes, and this system cannot fork")
    return CrashPoints(rowlock_ledger, tmp_path)
