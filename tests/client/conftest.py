"""A real server and a real worker for all tests here, and both clients with one face."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from anyio.from_thread import start_blocking_portal

from rowlock import Rowlock
from rowlock.client import AsyncClient, Client
from rowlock.server.tokens import Tokens
from tests.client.careless_proxy import careless_proxy
from tests.server.process import ServerProcess
from tests.support.ledgers import make_settings

if TYPE_CHECKING:
    from pathlib import Path

# An input whose indexKey begins with BAD is dead until a file of its name is there; SLOW waits for one.
PROGRAM = """
import time
from pathlib import Path

from rowlock import Reject, Rowlock

app = Rowlock()


@app.exporter("index_levels")
def index_levels(fields):
    there = Path(fields.indexKey).exists
    if fields.indexKey.startswith("BAD") and not there():
        raise Reject(f"no levels for {fields.indexKey}")
    while fields.indexKey.startswith("SLOW") and not there():
        time.sleep(0.01)
    for day in range(1000):
        yield {"index": fields.indexKey, "day": day, "level": 100 + day}
"""
CONFIG = """
storage_url = "file:files"
poll_seconds = 0.1
finalizer_seconds = 0.1
"""


@dataclass
class Service:
    url: str
    token: str
    reader: str
    folder: Path
    app: Rowlock

    def mend(self, index_key: str) -> None:
        (self.folder / index_key).touch()


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    (folder / "exports.py").write_text(PROGRAM)
    (folder / "rowlock.toml").write_text(CONFIG)
    settings = make_settings("sqlite", folder, None, grace_seconds=1, storage_url=f"file://{folder}/files")
    with Rowlock(settings=settings) as app:
        # Before the server starts: a running one knows new tokens a moment later.
        token, reader = (
            Tokens(app.ledger).create(*one).secret for one in (("tests", "admin"), ("reader", "read"))
        )
        server = ServerProcess(settings, "exports", folder=folder)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ROWLOCK_")}
        log = (folder / "worker.log").open("wb")
        worker = subprocess.Popen(
            [sys.executable, "-m", "rowlock.cli", "worker", "exports", "--ledger", settings.ledger_url],
            cwd=folder,
            env=clean,
            stderr=log,
        )
        try:
            yield Service(server.url, token, reader, folder, app)
        finally:
            worker.kill()
            worker.wait()
            server.end()
            log.close()


@pytest.fixture
def proxy(service):
    with careless_proxy(service.url) as proxy:
        yield proxy


class Blocking:
    """An AsyncClient with the face of a Client, so that one suite is for both."""

    def __init__(self, portal, client) -> None:
        self._portal = portal
        self._client = client

    def __repr__(self) -> str:
        return repr(self._client)

    def __getattr__(self, name):
        def call(*arguments, **options):
            found = getattr(self._client, name)(*arguments, **options)
            if inspect.isasyncgen(found):
                return self._each(found)
            return self._portal.call(_awaited, found)

        return call

    def _each(self, found):
        try:
            while (item := self._portal.call(_next, found)) is not StopAsyncIteration:
                yield item
        finally:
            self._portal.call(found.aclose)


async def _awaited(found):
    return await found


async def _next(found):
    return await anext(found, StopAsyncIteration)


@pytest.fixture(params=["plain", "async"])
def connect(request):
    """Makes clients of one kind."""
    opened = []

    @contextmanager
    def asynchronous(*arguments, **options):
        with start_blocking_portal() as portal:

            async def make():
                return AsyncClient(*arguments, **options)

            client = portal.call(make)
            yield Blocking(portal, client)
            portal.call(client.close)

    def connect(*arguments, **options):
        made = (Client if request.param == "plain" else asynchronous)(*arguments, **options)
        opened.append(made)
        return made.__enter__()

    yield connect
    for one in reversed(opened):
        one.__exit__(None, None, None)


@pytest.fixture
def client(connect, service):
    return connect(service.url, service.token)


@pytest.fixture
def careless(connect, service, proxy):
    """A client behind the proxy."""
    return connect(proxy.url, service.token)


@pytest.fixture
def named():
    """Inputs with index keys that no other test has."""
    mark = uuid4().hex[:8]

    def named(*names, date=20240202):
        return [
            {"indexKey": f"{name}-{mark}", "effectiveDate": date, "asofindicator": "CLS"} for name in names
        ]

    return named
