"""`rowlock serve` as a real process: real HTTP, real signals, and no public address without a token."""

from __future__ import annotations

import socket

import httpx2
import pytest

from rowlock.server.server import _listen
from rowlock.server.tokens import Tokens
from tests.support.waiting import eventually

PROGRAM = """
from rowlock import Rowlock

app = Rowlock()


@app.flow("score")
def score(record):
    return None
"""


def test_it_serves_until_a_signal_and_leaves_the_registry(app, start_server):
    server = start_server(app.settings)
    with httpx2.Client(base_url=server.url) as client:
        assert client.get("/health/live").json() == {"status": "live"}
        me = client.get("/health/instances").json()["server"]["instance"]
        assert client.get("/nothing?token=hunter2").json()["status"] == 404
        assert "server" not in client.get("/flows").headers
    assert "everybody on this machine may call" in server.said
    server.ask_to_stop()
    assert server.wait() == 0, server.said
    assert "Traceback" not in server.said
    assert "GET /nothing 404" in server.said
    assert "hunter2" not in server.said
    [row] = app.ledger.run("instance_find", id=me)
    assert (row.roles, row.state) == ("server", "stopped")


def test_tokens_of_a_running_server_come_and_go(app, start_server):
    server = start_server(app.settings)
    with httpx2.Client(base_url=server.url) as client:

        def status(secret):
            return client.get("/flows", headers={"Authorization": f"Bearer {secret}"}).status_code

        assert status("none") == 200
        secret = Tokens(app.ledger).create("ci", "read").secret
        eventually(lambda: client.get("/flows").status_code == 401, "the end of the open server")
        assert status(secret) == 200
        Tokens(app.ledger).revoke("ci")
        eventually(lambda: status(secret) == 401, "the revocation")
    server.ask_to_stop()
    assert server.wait() == 0
    assert secret not in server.said


def test_a_drained_server_ends_by_itself(make_app, start_server):
    app = make_app(lease_seconds=1)
    server = start_server(app.settings)
    me = httpx2.get(f"{server.url}/health/instances").json()["server"]["instance"]
    app.ledger.run("instance_drain", id=me)
    assert server.wait() == 0, server.said


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_public_address_without_a_token_that_counts_is_refused(app, start_server, host):
    tokens = Tokens(app.ledger)
    tokens.create("old", "admin")
    tokens.revoke("old")
    server = start_server(app.settings, "--host", host)
    assert server.wait() == 1
    assert "rowlock tokens create NAME --role admin" in server.said
    assert "Traceback" not in server.said
    assert app.ledger.run("instances_alive") == []


def test_a_public_address_with_a_token_is_served(app, start_server):
    secret = Tokens(app.ledger).create("ops", "read").secret
    server = start_server(app.settings, "--host", "0.0.0.0")
    url = server.url.replace("0.0.0.0", "127.0.0.1")
    assert httpx2.get(f"{url}/flows").status_code == 401
    assert httpx2.get(f"{url}/flows", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert "TLS" in server.said


def test_a_program_of_ones_own_is_served(app, start_server, tmp_path):
    (tmp_path / "served.py").write_text(PROGRAM)
    server = start_server(app.settings, "served:app", folder=tmp_path)
    assert httpx2.get(f"{server.url}/flows").status_code == 200


def test_an_answer_does_not_wait_for_the_acknowledgement_of_the_one_before():
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_a_sentence(app, start_server):
    port = start_server(app.settings).url.rpartition(":")[2]
    second = start_server(app.settings, "--port", port)
    assert second.wait() == 1
    assert f"127.0.0.1:{port} cannot be listened on" in second.said
    assert "Traceback" not in second.said
