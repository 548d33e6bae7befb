"""URLs: known dialects only, and never a secret in sight."""

from __future__ import annotations

import pytest

from rowlock import Rowlock
from rowlock.databases.url import masked, parse_url
from rowlock.errors import ConfigurationError, LedgerUnavailable, UnknownDialect


@pytest.mark.parametrize(
    ("url", "dialect", "driver"),
    [
        ("postgresql://u:p@h/d", "postgresql", "postgresql+psycopg"),
        ("postgres://u:p@h/d", "postgresql", "postgresql+psycopg"),
        ("postgresql+psycopg2://u:p@h/d", "postgresql", "postgresql+psycopg"),
        ("sqlite:///x.db", "sqlite", "sqlite"),
    ],
)
def test_what_users_write_becomes_the_driver_we_test(url, dialect, driver):
    found, parsed = parse_url(url)
    assert (found, parsed.drivername) == (dialect, driver)


def test_an_unknown_dialect_is_named_and_its_password_is_not():
    with pytest.raises(UnknownDialect, match="oracle") as caught:
        parse_url("oracle://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)
    assert "postgresql, sqlite" in str(caught.value)


def test_nonsense_is_refused_without_being_shown():
    with pytest.raises(ConfigurationError) as caught:
        parse_url("hunter2 at the database")
    assert "hunter2" not in str(caught.value)


def test_a_ledger_in_memory_is_refused():
    for url in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(ConfigurationError, match="Name a file"):
            parse_url(url)


def test_secrets_are_masked_wherever_they_stand():
    shown = masked("postgresql://user:hunter2@host/db?sslpassword=hunter3&application_name=x")
    assert "hunter" not in shown
    assert "application_name=x" in shown


def test_an_error_from_the_driver_does_not_show_the_password():
    app = Rowlock("postgresql://user:hunter2@127.0.0.1:1/db?connect_timeout=1")
    with app, pytest.raises(LedgerUnavailable) as caught:
        app.enqueue("x", {"a": 1})
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
