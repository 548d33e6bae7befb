"""Who gets in: tokens, and the first try on one's own machine, which no web page may abuse."""

from __future__ import annotations

import pytest

from rowlock.server.guard import is_loopback
from rowlock.server.tokens import Role
from tests.server.conftest import client_of


@pytest.fixture
def kind():
    return "sqlite"  # both dialects are asked in test_tokens.py


ORDER = {"inputs": [{"index_key": "SPX", "effective": "2026-01-10"}]}


def post(client, **headers):
    return client.post(
        "/samples/orders",
        json=ORDER,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"])
def test_without_tokens_this_machine_may_call_by_its_own_names(client, host):
    assert post(client, host=host).status_code == 202


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", "::1", ""]
)
def test_without_tokens_a_name_that_was_made_to_lead_here_is_refused(client, host):
    answer = client.get("/flows", headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["type"] == "urn:rowlock:problem:host-refused"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "origin": "http://localhost:8080"},
    ],
)
def test_without_tokens_no_page_of_another_origin_changes_anything(client, headers):
    answer = post(client, **headers)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:rowlock:problem:cross-origin")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost:8080", "sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none"},
        {"origin": "http://LOCALHOST:8080"},
    ],
)
def test_programs_and_our_own_pages_may(client, headers):
    assert post(client, **headers).status_code == 202


def test_no_page_of_another_origin_may_read_either(client):
    answer = client.get("/flows", headers={"origin": "http://evil.example", "sec-fetch-site": "cross-site"})
    assert "access-control-allow-origin" not in answer.headers
    assert client.options("/flows", headers={"origin": "http://evil.example"}).status_code == 405


@pytest.mark.parametrize("peer", ["192.0.2.7", "::2", "testclient"])
def test_without_tokens_other_machines_are_refused(api, peer):
    with client_of(api, client=(peer, 1)) as client:
        answer = client.get("/flows")
        assert answer.status_code == 401
        assert "rowlock tokens create" in answer.json()["detail"]
        assert client.get("/health/live").status_code == 200


def test_loopback_in_all_its_spellings():
    assert all(is_loopback(address) for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"))
    assert not any(is_loopback(address) for address in ("0.0.0.0", "10.0.0.1", "::", "localhost", ""))


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        (None, 'Bearer realm="rowlock"'),
        ("Basic dXNlcjpwYXNz", 'Bearer realm="rowlock", error="invalid_request"'),
        ("Bearer", 'Bearer realm="rowlock", error="invalid_request"'),
        ("Bearer ", 'Bearer realm="rowlock", error="invalid_request"'),
        ("Bearer rl_nobody", 'Bearer realm="rowlock", error="invalid_token"'),
        ("Bearer \xff\xfe", 'Bearer realm="rowlock", error="invalid_token"'),
    ],
)
@pytest.mark.usefixtures("bearer")
def test_a_refused_caller_is_told_how(client, header, challenge):
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    answer = client.get("/flows", headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, challenge)
    assert answer.headers["content-type"] == "application/problem+json"


def test_with_a_token_hosts_and_origins_do_not_matter(api, bearer):
    with client_of(api, base_url="https://rowlock.example", client=("192.0.2.7", 1)) as client:
        headers = {**bearer[Role.SUBMIT], "origin": "https://elsewhere.example"}
        assert client.post("/samples/orders", json=ORDER, headers=headers).status_code == 202


def test_two_authorization_headers_are_refused(client, bearer):
    value = bearer[Role.READ]["Authorization"]
    answer = client.get("/flows", headers=[("Authorization", value), ("Authorization", value)])
    assert answer.status_code == 401
