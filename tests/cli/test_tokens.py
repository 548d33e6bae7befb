"""`rowlock tokens`: create, list, revoke, in both dialects; and what `rowlock serve` says before it serves."""

import pytest

from rowlock.cli import serve
from rowlock.server.tokens import Tokens


@pytest.mark.usefixtures("cli_ledger")
def test_a_secret_is_printed_once_and_alone(cli, cli_app):
    result = cli("tokens", "create", "ci-exports", "--role", "submit", "--days", "90")
    secret = result.stdout.strip()
    assert "\n" not in secret
    assert Tokens(cli_app.ledger).book().find(secret).name == "ci-exports"
    assert "not shown again" in result.stderr
    for shown in (cli.ok("tokens", "list"), str(cli.json("tokens", "list"))):
        assert secret not in shown
        assert secret[:9] in shown
    [found] = cli.json("tokens", "list")
    assert (found["name"], found["role"], found["state"], found["used_at"]) == (
        "ci-exports", "submit", "active", None
    )  # fmt: skip


@pytest.mark.usefixtures("cli_ledger")
def test_a_revoked_token_stays_on_the_list(cli):
    created = cli.json("tokens", "create", "ops", "--role", "admin")
    assert (created["role"], created["expires_at"]) == ("admin", None)
    assert "already" in cli.refused("tokens", "create", "ops", "--role", "read")
    assert "ops is revoked." in cli.ok("tokens", "revoke", "ops")
    assert [one["state"] for one in cli.json("tokens", "list")] == ["revoked"]
    assert "no token 'ops'" in cli.refused("tokens", "revoke", "ops")


@pytest.mark.usefixtures("cli_sqlite")
def test_what_cannot_be_a_token_is_a_sentence(cli):
    assert "No tokens" in cli.ok("tokens", "list")
    assert "read, submit, operate, admin" in cli.refused("tokens", "create", "x", "--role", "root")
    assert "--role" in cli.refused("tokens", "create", "x", code=2)


@pytest.mark.usefixtures("cli_home")
def test_serving_a_ledger_that_there_is_not(cli, cli_home):
    assert "rowlock init" in cli.refused("serve")
    assert list(cli_home.iterdir()) == []


@pytest.mark.usefixtures("cli_sqlite")
def test_a_server_without_its_packages_says_which_to_install(cli, monkeypatch):
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    assert "rowlock[server]" in cli.refused("serve")
