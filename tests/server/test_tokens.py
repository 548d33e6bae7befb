"""Tokens: made once, known by their hash, gone within seconds."""

from __future__ import annotations

import anyio
import pytest

from rowlock import InvalidInput, LedgerUnavailable, NotFound, Refused
from rowlock.server import access
from rowlock.server.tokens import Role, Tokens
from tests.support.ledgers import sql


@pytest.fixture
def tokens(ledger):
    return Tokens(ledger)


def test_a_secret_is_found_again_and_never_kept(tokens, ledger):
    created = tokens.create("ci", "submit", days=30)
    assert created.secret.startswith("rl_")
    assert len(created.secret) >= 46
    caller = tokens.book().find(created.secret)
    assert (caller.name, caller.role) == ("ci", Role.SUBMIT)
    [row] = sql(ledger, "SELECT * FROM {s}api_tokens")
    assert created.secret not in str(row)
    [shown] = tokens.list()
    assert "hash" not in shown
    assert created.secret.startswith(shown["prefix"])
    assert len(shown["prefix"]) == 9
    assert shown["expires_at"] == created.expires_at


def test_what_is_almost_a_secret_is_nobodys(tokens):
    secret = tokens.create("ci", "read").secret
    book = tokens.book()
    for wrong in (secret[:-1], secret + "x", secret[:9], secret.swapcase(), "", "rl_", "\udcff"):
        assert book.find(wrong) is None
    assert book.find(secret).name == "ci"


def test_a_name_is_one_tokens_at_a_time(tokens):
    old = tokens.create("ci", "read").secret
    with pytest.raises(Refused, match="rowlock tokens revoke ci"):
        tokens.create("ci", "admin")
    tokens.revoke("ci")
    new = tokens.create("ci", "admin").secret
    book = tokens.book()
    assert (book.find(old), book.find(new).role) == (None, Role.ADMIN)
    assert [one["state"] for one in tokens.list()] == ["revoked", "active"]


def test_revoking_what_there_is_not(tokens):
    with pytest.raises(NotFound, match="rowlock tokens list"):
        tokens.revoke("nobody")
    tokens.create("ci", "read")
    tokens.revoke("ci")
    with pytest.raises(NotFound):
        tokens.revoke("ci")


def test_a_token_expires_by_the_ledgers_clock(tokens, ledger_clock):
    secret = tokens.create("ci", "read", days=2).secret
    ledger_clock.advance(2 * 86400 - 60)
    assert tokens.book().find(secret)
    ledger_clock.advance(61)
    book = tokens.book()
    assert book.find(secret) is None
    assert not book.usable
    assert not book.empty
    assert tokens.list()[0]["state"] == "expired"


@pytest.mark.parametrize(
    ("name", "role", "days"),
    [
        ("", "read", 1),
        (" ci", "read", 1),
        ("a\nb", "read", 1),
        ("x" * 101, "read", 1),
        ("ci", "root", 1),
        ("ci", "read", 0),
    ],
)
def test_what_cannot_be_a_token(tokens, name, role, days):
    with pytest.raises(InvalidInput):
        tokens.create(name, role, days)
    assert tokens.list() == []


def test_roles_are_in_order():
    assert [[a.covers(b) for b in Role] for a in Role] == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, True],
    ]


# -- as a server knows them ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("now")
def test_from_the_first_token_on_everybody_needs_one_for_ever(client, app):
    assert client.get("/flows").status_code == 200
    tokens = Tokens(app.ledger)
    secret = tokens.create("first", "read").secret
    assert client.get("/flows").status_code == 401
    assert client.get("/flows", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    tokens.revoke("first")
    assert client.get("/flows").status_code == 401
    assert client.get("/flows", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_many_requests_cost_one_statement_and_a_revocation_counts_when_that_is_old(
    client, app, bearer, monkeypatch
):
    asked = []
    read = Tokens.book
    monkeypatch.setattr(Tokens, "book", lambda self: asked.append(1) or read(self))
    monkeypatch.setattr(access, "FRESH_SECONDS", 1e9)
    for _ in range(20):
        assert client.get("/flows", headers=bearer[Role.READ]).status_code == 200
    assert len(asked) == 1
    Tokens(app.ledger).revoke("read")
    monkeypatch.setattr(access, "FRESH_SECONDS", 0.0)
    assert client.get("/flows", headers=bearer[Role.READ]).status_code == 401


def test_revocations_count_within_seconds():
    assert access.FRESH_SECONDS <= 5


def test_secrets_that_nobody_has_do_not_cost_a_statement_each(client, bearer, monkeypatch):
    asked = []
    read = Tokens.book
    monkeypatch.setattr(Tokens, "book", lambda self: asked.append(1) or read(self))
    monkeypatch.setattr(access, "_UNKNOWN_SECONDS", 1e9)
    for number in range(20):
        assert client.get("/flows", headers={"Authorization": f"Bearer rl_{number}"}).status_code == 401
    assert len(asked) == 1


def test_a_new_token_works_at_once(client, app, bearer, monkeypatch):
    monkeypatch.setattr(access, "FRESH_SECONDS", 1e9)
    monkeypatch.setattr(access, "_UNKNOWN_SECONDS", 0.0)
    assert client.get("/flows", headers=bearer[Role.READ]).status_code == 200
    new = Tokens(app.ledger).create("new", "read").secret
    assert client.get("/flows", headers={"Authorization": f"Bearer {new}"}).status_code == 200


def test_the_last_use_is_kept_to_the_minute(client, app, app_clock, bearer):
    tokens = Tokens(app.ledger)

    def used():
        return next(one["used_at"] for one in tokens.list() if one["name"] == "read")

    assert used() is None
    client.get("/flows", headers=bearer[Role.READ])
    first = used()
    assert first is not None
    [caller] = [tokens.book().find(bearer[Role.READ]["Authorization"].removeprefix("Bearer "))]
    tokens.note_use(caller.token_id)
    assert used() == first
    app_clock.advance(61)
    tokens.note_use(caller.token_id)
    assert used() > first


def test_those_who_wait_for_the_same_read_share_its_failure():
    asked = []

    def away():
        asked.append(1)
        raise LedgerUnavailable("away")

    async def all_at_once():
        known, refused = access.Access(away), []

        async def ask():
            try:
                await known.is_open()
            except LedgerUnavailable as error:
                refused.append(error)

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(ask)
        return refused

    assert len(anyio.run(all_at_once)) == 5
    assert len(asked) == 1
