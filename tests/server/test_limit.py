"""Bodies that are too large or too slow are refused while they arrive."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import anyio
import pytest
from starlette.exceptions import HTTPException

from rowlock.server.api import create_api
from rowlock.server.limit import Limit
from tests.server import samples
from tests.server.conftest import client_of


@pytest.fixture
def kind():
    return "sqlite"


@pytest.fixture
def client(make_app):
    api = create_api(make_app(max_request_bytes=1024), routers=[samples.router])
    with client_of(api) as client:
        yield client


JSON = {"content-type": "application/json"}


def test_a_body_that_says_it_is_too_large_is_refused_unread(client):
    answer = client.post("/samples/orders", content=b" " * 1025, headers=JSON)
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert "1,024 bytes" in answer.json()["detail"]


def test_a_body_at_the_limit_is_read(client):
    assert client.post("/samples/orders", content=b" " * 1024, headers=JSON).status_code == 400


def test_a_body_that_does_not_say_its_size_is_counted(client):
    answer = client.post("/samples/orders", content=(b" " * 512 for _ in range(3)), headers=JSON)
    assert answer.status_code == 413
    assert "content-length" not in answer.request.headers


def test_a_body_of_a_route_that_takes_none_is_limited_too(client):
    assert client.request("GET", "/flows", content=b" " * 1025).status_code == 413


def test_a_real_server_stops_reading(make_app, start_server):
    app = make_app(max_request_bytes=100_000)
    where = urlsplit(start_server(app.settings).url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as connection:
        connection.sendall(
            b"POST /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n"
            + b"x" * 1000
        )
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer


def test_a_body_that_does_not_arrive_is_408():
    async def reads_it_all(scope, receive, send):
        while (await receive()).get("more_body"):
            pass

    async def never():
        await anyio.sleep_forever()

    with pytest.raises(HTTPException) as refused:
        anyio.run(
            Limit(reads_it_all, max_bytes=1, seconds=0.01), {"type": "http", "headers": []}, never, None
        )
    assert refused.value.status_code == 408


def test_once_a_body_is_there_nothing_is_hurried():
    """Whoever streams an answer waits for the caller to go away, for as long as it takes."""
    arriving = [{"type": "http.request", "body": b""}, {"type": "http.disconnect"}]
    seen = []

    async def receive():
        if len(arriving) == 1:
            await anyio.sleep(0.1)
        return arriving.pop(0)

    async def streams(scope, receive, send):
        seen.extend([await receive(), await receive()])

    anyio.run(Limit(streams, max_bytes=1, seconds=0.05), {"type": "http", "headers": []}, receive, None)
    assert [message["type"] for message in seen] == ["http.request", "http.disconnect"]
