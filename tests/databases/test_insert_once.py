"""insert_once: one of any number of callers, on every database, through every kind of connection."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pymysql
import pytest
from sqlalchemy import create_engine
from sqlalchemy import text as sql_text
from sqlalchemy.orm import Session

from rowlock import ConfigurationError, InvalidInput, Rowlock, insert_once
from rowlock.databases.connections import borrowed
from rowlock.databases.insert_once import (
    _named_index,
    checked,
    look_statement,
    on_conflict_statement,
    plain_statement,
    where_not_exists_statement,
)
from tests.support.mariadb import INSTALL, SERVER, LocalMariadb

TABLE = """CREATE TABLE {} (
    accession varchar(40) NOT NULL,
    company varchar(40) NOT NULL,
    url varchar(40) UNIQUE,
    filed_at timestamp NULL
)"""


@pytest.fixture(scope="session")
def mariadb():
    if not SERVER or not INSTALL:
        pytest.skip("mariadb-server is not installed")
    with LocalMariadb() as server:
        yield server


class Place:
    """A table of its own in one kind of database, and ways to reach it."""

    def __init__(self, kind, url, connect):
        self.kind = kind
        self.connect = connect  # a connection of the driver's
        self.engine = create_engine(url)
        self.table = f"filings_{uuid4().hex[:10]}"
        self.sql(TABLE.format(self.table))
        self.sql(f"CREATE UNIQUE INDEX {self.table}_x ON {self.table} (accession)")

    def sql(self, statement, *values):
        with self.engine.begin() as connection:
            result = connection.execute(sql_text(statement), *values)
            return [tuple(row) for row in result.fetchall()] if result.returns_rows else []

    def rows(self):
        return self.sql(f"SELECT accession, company FROM {self.table} ORDER BY accession")

    def once(self, connection, **values):
        row = {"accession": "a-1", "company": "Acme", **values}
        return insert_once(connection, self.table, row, unique=["accession"])


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def place(request, tmp_path):
    match request.param:
        case "sqlite":
            path = f"{tmp_path}/shop.db"
            found = Place("sqlite", f"sqlite:///{path}", lambda: sqlite3.connect(path, timeout=30))
        case "postgresql":
            url = request.getfixturevalue("postgres").url
            found = Place("postgresql", url.replace("://", "+psycopg://"), lambda: psycopg.connect(url))
        case _:
            server = request.getfixturevalue("mariadb")
            found = Place("mariadb", server.url, server.connect)
    yield found
    found.engine.dispose()


# -- one of many -----------------------------------------------------------------------------------------------


def test_of_many_concurrent_callers_exactly_one_inserts(place):
    for turn in range(20):
        start = threading.Barrier(6)
        told = []

        def call(key=f"k-{turn}", start=start, told=told):
            with closing(place.connect()) as connection:
                start.wait()
                told.append(place.once(connection, accession=key))
                connection.commit()

        threads = [threading.Thread(target=call) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == [False] * 5 + [True]
    assert len(place.rows()) == 20


def test_who_rolls_back_was_not_the_one(place):
    with closing(place.connect()) as connection:
        assert place.once(connection)
        connection.rollback()
        assert place.once(connection)
        connection.commit()
        assert not place.once(connection, company="Other")
    assert place.rows() == [("a-1", "Acme")]


def test_a_transaction_that_has_read_before_is_told_of_a_row_that_came_since(place):
    """MariaDB shows a transaction the past; insert_once does not ask the past."""
    if place.kind == "sqlite":
        pytest.skip("SQLite refuses to write on an old snapshot")
    with closing(place.connect()) as late, closing(place.connect()) as early:
        late.cursor().execute(f"SELECT * FROM {place.table}")
        assert place.once(early)
        early.commit()
        assert not place.once(late)
        late.commit()


@contextmanager
def session(place):
    with Session(place.engine) as opened, opened.begin():
        yield opened


@contextmanager
def core(place):
    with place.engine.begin() as connection:
        yield connection


@contextmanager
def driver(place):
    with closing(place.connect()) as connection:
        yield connection
        connection.commit()


@pytest.mark.parametrize("way", [session, core, driver])
def test_every_kind_of_connection(place, way):
    with way(place) as connection:
        assert place.once(connection, filed_at=datetime(2030, 1, 2, 3, 4, 5, tzinfo=None))  # noqa: DTZ001
        assert not place.once(connection)
        assert place.once(connection, accession="a-2", company="50 % :off? \\ 'x'")
    with way(place) as connection:
        assert not place.once(connection)
    assert place.rows() == [("a-1", "Acme"), ("a-2", "50 % :off? \\ 'x'")]


def test_in_a_transaction_of_ours(app: Rowlock):
    with app.lock("x") as lease:
        with lease.transaction() as tx:
            tx.execute("CREATE TABLE IF NOT EXISTS once_tx (a integer PRIMARY KEY)")
            tx.execute("DELETE FROM once_tx")
            assert insert_once(tx, "once_tx", {"a": 1}, unique=["a"])
        with lease.transaction() as tx:
            assert not insert_once(tx, "once_tx", {"a": 1}, unique=["a"])


async def _in_async_transactions(app: Rowlock) -> None:
    async with app.lock("x") as lease, lease.transaction() as tx:
        await tx.aexecute("CREATE TABLE IF NOT EXISTS once_atx (a integer PRIMARY KEY)")
        await tx.aexecute("DELETE FROM once_atx")
        assert await tx.run_sync(lambda tx: insert_once(tx, "once_atx", {"a": 1}, unique=["a"]))
        assert not await tx.run_sync(lambda tx: insert_once(tx, "once_atx", {"a": 1}, unique=["a"]))


def test_in_an_async_transaction_of_ours(app: Rowlock):
    import asyncio

    asyncio.run(_in_async_transactions(app))


# -- errors are not hidden --------------------------------------------------------------------------------------

ERRORS = {
    "sqlite": sqlite3.IntegrityError,
    "postgresql": psycopg.IntegrityError,
    "mariadb": pymysql.err.IntegrityError,
}


def test_another_unique_key_is_an_error(place):
    with closing(place.connect()) as connection:
        assert place.once(connection, url="u")
        connection.commit()
        with pytest.raises(ERRORS[place.kind]):
            place.once(connection, accession="a-2", url="u")
        connection.rollback()
        assert not place.once(connection, url="u"), "the row itself is there, whatever else is in the way"


def test_a_missing_value_is_an_error(place):
    with (
        closing(place.connect()) as connection,
        pytest.raises((ERRORS[place.kind], pymysql.err.OperationalError)),
    ):
        place.once(connection, company=None)
    assert place.rows() == []


def test_a_foreign_key_is_an_error(place):
    child = f"{place.table}_child"
    place.sql(
        f"CREATE TABLE {child} (id integer PRIMARY KEY, accession varchar(40) NOT NULL, "
        f"FOREIGN KEY (accession) REFERENCES {place.table} (accession))"
    )
    with closing(place.connect()) as connection:
        if place.kind == "sqlite":
            connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(ERRORS[place.kind]):
            insert_once(connection, child, {"id": 1, "accession": "nowhere"}, unique=["id"])


@pytest.mark.parametrize("way", [core, driver])
def test_without_a_unique_index_it_says_which_to_create(place, way):
    with pytest.raises(ConfigurationError) as raised, way(place) as connection:
        insert_once(
            connection, place.table, {"accession": "a", "company": "c"}, unique=["accession", "company"]
        )
    statement = str(raised.value).partition("Create one: ")[2]
    assert statement.startswith("CREATE UNIQUE INDEX ")
    place.sql(statement)
    with way(place) as connection:
        assert insert_once(
            connection, place.table, {"accession": "a", "company": "c"}, unique=["company", "accession"]
        )


def test_an_index_on_the_beginning_of_a_column_does_not_count(mariadb):
    place = Place("mariadb", mariadb.url, mariadb.connect)
    place.sql(f"CREATE UNIQUE INDEX short ON {place.table} (company(2))")
    with closing(place.connect()) as connection, pytest.raises(ConfigurationError):
        insert_once(connection, place.table, {"accession": "a", "company": "c"}, unique=["company"])
    place.engine.dispose()


def test_a_value_that_is_stored_rounded_is_known_by_its_index(mariadb):
    place = Place("mariadb", mariadb.url, mariadb.connect)
    place.sql(f"CREATE TABLE {place.table}_halts (ticker varchar(9), at datetime, UNIQUE (ticker, at))")
    row = {"ticker": "ACME", "at": datetime(2030, 1, 1, 9, 30, 0, 123456, tzinfo=UTC)}
    with closing(place.connect(client_flag=pymysql.constants.CLIENT.FOUND_ROWS)) as connection:
        assert insert_once(connection, f"shop.{place.table}_halts", row, unique=["ticker", "at"])
        assert not insert_once(connection, f"shop.{place.table}_halts", row, unique=["ticker", "at"])
    place.engine.dispose()


def test_of_two_keys_that_are_in_the_way_the_other_one_may_be_named(mariadb):
    """And a transaction that has read before does not see the row that is there now, unless it asks so."""
    place = Place("mariadb", mariadb.url, mariadb.connect)
    place.sql(f"CREATE TABLE {place.table}_ids (id integer PRIMARY KEY, accession varchar(9) UNIQUE)")
    row = {"id": 1, "accession": "a-1"}
    with closing(place.connect()) as late, closing(place.connect()) as early:
        late.cursor().execute(f"SELECT * FROM {place.table}_ids")
        assert insert_once(early, f"{place.table}_ids", row, unique=["accession"])
        early.commit()
        assert not insert_once(late, f"{place.table}_ids", row, unique=["accession"])
        with pytest.raises(pymysql.err.IntegrityError):
            insert_once(late, f"{place.table}_ids", row | {"accession": "a-2"}, unique=["accession"])
    place.engine.dispose()


# -- what is refused before anything is sent ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "row", "unique", "says"),
    [
        ("t", {}, ["a"], "row is a dict"),
        ("t", {"a": 1}, "a", "unique is a list"),
        ("t", {"a": 1}, [], "unique is a list"),
        ("t", {"a": 1}, ["a", "a"], "unique is a list"),
        ("t", {"a": None}, ["a"], "needs a value"),
        ("t", {"b": 1}, ["a"], "needs a value"),
        ("t; DROP TABLE t", {"a": 1}, ["a"], "no name for a table"),
        ('t"', {"a": 1}, ["a"], "no name for a table"),
        ("a.b.c", {"a": 1}, ["a"], "SCHEMA.NAME"),
        ("t", {"a": 1, "b`": 2}, ["a"], "no name for a table or a column"),
    ],
)
def test_input_that_cannot_be(table, row, unique, says):
    with pytest.raises(InvalidInput, match=says):
        checked(table, row, unique)


def test_a_connection_that_is_none():
    with pytest.raises(InvalidInput, match=r"not builtins\.str"):
        borrowed("sqlite:///x.db")


# -- the statements -------------------------------------------------------------------------------------------------

WANTED = checked("s.t", {"a": 1, "b": 2, "c": 3}, ["a", "b"])


def test_the_statement_of_each_dialect():
    assert (
        on_conflict_statement(WANTED)
        == 'INSERT INTO "s"."t" ("a", "b", "c") VALUES (?, ?, ?) ON CONFLICT ("a", "b") DO NOTHING'
    )
    assert plain_statement(WANTED) == "INSERT INTO `s`.`t` (`a`, `b`, `c`) VALUES (?, ?, ?)"
    assert (
        look_statement(WANTED) == "SELECT 1 FROM `s`.`t` WHERE `a` = ? AND `b` = ? LIMIT 1 LOCK IN SHARE MODE"
    )


def test_the_statement_for_sql_server_locks_the_range_it_has_looked_at():
    """Only its text: there is no SQL Server here."""
    assert where_not_exists_statement(WANTED) == (
        "INSERT INTO [s].[t] ([a], [b], [c]) SELECT ?, ?, ? WHERE NOT EXISTS "
        "(SELECT 1 FROM [s].[t] WITH (UPDLOCK, SERIALIZABLE) WHERE [a] = ? AND [b] = ?)"
    )


def test_the_key_is_read_from_every_form_of_the_error():
    assert _named_index("Duplicate entry 'x' for key 'PRIMARY'") == "PRIMARY"
    assert _named_index("Duplicate entry 'it's' for key 'shop.once'") == "once"
    assert _named_index("Doppelter Eintrag 'x' für Schlüssel 'once'") == "once"
    assert _named_index("?") == ""
