"""Named databases: from rowlock.toml and from the environment; secrets stay hidden; reading changes nothing."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from rowlock import ConfigurationError, Settings
from rowlock.databases.manager import DatabaseManager, from_environment

PREFIX = "DEVELOPMENT_DISTRIBUTED_PROCESSOR"


@pytest.fixture
def file(tmp_path):
    with sqlite3.connect(tmp_path / "hub.db") as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    return tmp_path / "hub.db"


def test_databases_of_the_file_and_of_the_environment(file, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}_SURVEY_HUB_TYPE", "sqlite")
    monkeypatch.setenv(f"{PREFIX}_SURVEY_HUB_CONNECTION_STRING", f"sqlite:///{file}")
    settings = Settings(databases={"other": {"url": "sqlite:///o.db"}}, database_prefix=PREFIX)
    with DatabaseManager(settings) as manager:
        assert manager.names == ["other", "survey_hub"]
        assert manager.execute_query("survey_hub", "SELECT x FROM t WHERE x = :x", {"x": 1}) == [{"x": 1}]
        assert manager.execute_query("survey_hub", "INSERT INTO t VALUES (2)") == []
        assert len(manager.execute_query("survey_hub", "SELECT x FROM t")) == 2


def test_the_seeds_examples_are_understood():
    found = from_environment(
        PREFIX,
        {
            f"{PREFIX}_RPA_DB_TYPE": "postgresql",
            f"{PREFIX}_RPA_DB_CONNECTION_STRING": "postgresql://user:pass@localhost:5432/rpa_db",
            f"{PREFIX}_SURVEY_HUB_TYPE": "sqlserver",
            f"{PREFIX}_SURVEY_HUB_CONNECTION_STRING": "mssql+pyodbc://user:pass@survey-server:1433/survey_hub",
            "OTHER_X_CONNECTION_STRING": "sqlite:///x.db",
        },
    )
    assert sorted(found) == ["rpa_db", "survey_hub"]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"P_X_TYPE": "postgresql"}, "P_X_CONNECTION_STRING is not"),
        ({"P_X_TYPE": "sqlserver", "P_X_CONNECTION_STRING": "sqlite:///x"}, "said to be 'sqlserver'"),
        ({"P_X_TYPE": "sqlite", "P_X_CONNECTION_STRING": "s3cret nonsense"}, "cannot be read"),
    ],
)
def test_variables_that_do_not_fit_are_named(variables, words):
    with pytest.raises(ConfigurationError, match=words) as caught:
        from_environment("P", variables)
    assert "s3cret" not in str(caught.value)


def test_a_name_that_nobody_has_given():
    with pytest.raises(ConfigurationError, match=r"no database 'hub'; there are: x.*\[databases.hub\]"):
        DatabaseManager(Settings(databases={"x": {"url": "sqlite:///x.db"}})).engine("hub")


def test_a_driver_that_is_not_installed():
    manager = DatabaseManager(Settings(databases={"x": {"url": "nosuch://user:s3cret@host/x"}}))
    with pytest.raises(ConfigurationError, match="driver") as caught:
        manager.engine("x")
    assert "s3cret" not in str(caught.value)


def test_passwords_are_hidden():
    settings = Settings(databases={"x": {"url": "postgresql://user:s3cret@host/x"}})
    assert "s3cret" not in f"{settings!r} {DatabaseManager(settings)!r}"


def test_reading_sqlite_cannot_write_nor_make_a_file(file, tmp_path):
    settings = Settings(
        databases={"x": {"url": f"sqlite:///{file}"}, "none": {"url": f"sqlite:///{tmp_path}/none.db"}}
    )
    with DatabaseManager(settings) as manager:
        with manager.reading("x") as connection, pytest.raises(DBAPIError, match="readonly"):
            connection.execute(text("INSERT INTO t VALUES (2)"))
        with pytest.raises(DBAPIError), manager.reading("none"):
            pass
    assert not (tmp_path / "none.db").exists()


def test_reading_postgresql_sees_one_moment_and_cannot_write(postgres):
    settings = Settings(databases={"x": {"url": postgres.url}})
    names = "current_setting('transaction_isolation'), current_setting('transaction_read_only')"
    with DatabaseManager(settings) as manager, manager.reading("x") as connection:
        assert connection.execute(text(f"SELECT {names}")).one() == ("repeatable read", "on")
