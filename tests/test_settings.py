"""Settings: environment over rowlock.toml over defaults; a bad one is named."""

from __future__ import annotations

import pytest

from rowlock.errors import ConfigurationError
from rowlock.settings import load_settings


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_default_ledger_is_a_sqlite_file_in_the_working_directory():
    assert load_settings().ledger_url == "sqlite:///rowlock.db"


def test_rowlock_toml_is_read(tmp_path):
    (tmp_path / "rowlock.toml").write_text('ledger_url = "sqlite:///other.db"\nlease_seconds = 10\n')
    settings = load_settings()
    assert (settings.ledger_url, settings.lease_seconds) == ("sqlite:///other.db", 10)
    assert settings.heartbeat_seconds == pytest.approx(10 / 3)


def test_the_environment_is_stronger(tmp_path, monkeypatch):
    (tmp_path / "rowlock.toml").write_text('ledger_url = "sqlite:///other.db"\n')
    monkeypatch.setenv("ROWLOCK_LEDGER_URL", "sqlite:///third.db")
    assert load_settings().ledger_url == "sqlite:///third.db"
    assert load_settings(ledger_url="sqlite:///fourth.db").ledger_url == "sqlite:///fourth.db"


def test_another_file_can_be_named(tmp_path, monkeypatch):
    (tmp_path / "prod.toml").write_text("poll_seconds = 3\n")
    monkeypatch.setenv("ROWLOCK_CONFIG", "prod.toml")
    assert load_settings().poll_seconds == 3
    monkeypatch.setenv("ROWLOCK_CONFIG", "nowhere.toml")
    with pytest.raises(ConfigurationError, match="no such file"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lease_seconds = 0", "lease_seconds"),
        ("ledger_schema = 'a; drop table x'", "letters, digits"),
        ("leese_seconds = 3", "leese_seconds"),
        ("lease_seconds = ", "cannot be read"),
    ],
)
def test_a_bad_setting_is_named(tmp_path, text, words):
    (tmp_path / "rowlock.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        load_settings()


def test_a_secret_in_a_bad_setting_is_not_shown(monkeypatch):
    monkeypatch.setenv("ROWLOCK_POOL_SIZE", "s3cret")
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert "s3cret" not in str(caught.value)
