"""The outbox: only who inserts the row tells others, and nothing that was committed goes untold."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import psycopg
import pytest

from rowlock import ConfigurationError, Refused, Rowlock, UnknownFlow
from rowlock.queue.outbox import _key
from tests.support.ledgers import sql

CREATE = "CREATE TABLE {s}filings (accession varchar(400) PRIMARY KEY, company varchar(40) NOT NULL)"


@pytest.fixture
def told(app: Rowlock) -> list:
    """The alerts that were sent."""
    sent: list = []
    app.flow("alerts")(lambda record: sent.append(record.payload))
    sql(app.ledger, CREATE)
    return sent


def table(app: Rowlock) -> str:
    return "filings" if app.ledger.dialect == "sqlite" else f"{app.settings.ledger_schema}.filings"


def file(app: Rowlock, connection, accession="a-1", company="Acme", **options) -> bool:
    row = {"accession": accession, "company": company}
    message = options.pop("message", {"filing": accession})
    outbox = app.outbox("alerts")
    return outbox.insert_once(connection, table(app), row, unique=["accession"], message=message, **options)


def drain(app: Rowlock) -> None:
    app.worker(until_empty=True).run()


def test_only_the_inserter_tells(app: Rowlock, told: list):
    start = threading.Barrier(6)
    inserted: list[bool] = []

    def poll() -> None:
        start.wait()
        for number in range(10):
            with app.ledger.engine.begin() as connection:
                inserted.append(file(app, connection, f"a-{number}"))

    threads = [threading.Thread(target=poll) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inserted.count(True) == 10
    assert inserted.count(False) == 50
    drain(app)
    assert sorted(one["filing"] for one in told) == [f"a-{number}" for number in range(10)]


def test_row_and_message_are_one_commit(app: Rowlock, told: list):
    with pytest.raises(RuntimeError), app.ledger.engine.begin() as connection:
        assert file(app, connection)
        raise RuntimeError
    drain(app)
    assert told == []
    assert sql(app.ledger, "SELECT * FROM {s}filings") == []
    with app.ledger.engine.begin() as connection:
        assert file(app, connection), "nobody has inserted it"
    drain(app)
    assert told == [{"filing": "a-1"}]


def test_under_a_lease_or_from_a_handler(app: Rowlock, told: list):
    @app.flow("collect")
    def collect(record) -> None:
        with record.transaction() as tx:
            file(app, tx, record.payload)

    with app.lock("monitor") as lease, lease.transaction() as tx:
        assert file(app, tx, "under a lease", priority=7)
    app.enqueue("collect", "from a handler")
    app.enqueue("collect", "under a lease")
    drain(app)
    assert sorted(one["filing"] for one in told) == ["from a handler", "under a lease"]


def test_a_list_is_one_message(app: Rowlock, told: list):
    with app.ledger.engine.begin() as connection:
        file(app, connection, message=[1, 2])
    drain(app)
    assert told == [[1, 2]]


PROGRAM = """
import os, signal, sys
from rowlock import Rowlock
app = Rowlock()
app.flow("alerts")(lambda record: None)
with app.ledger.engine.begin() as connection:
    app.outbox("alerts").insert_once(
        connection, sys.argv[1], {"accession": "a", "company": "c"}, unique=["accession"], message="told")
    if sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_crash_after_the_commit_loses_no_message_and_one_before_it_sends_none(app: Rowlock, told: list):
    environment = os.environ | {
        "ROWLOCK_LEDGER_URL": app.settings.ledger_url,
        "ROWLOCK_LEDGER_SCHEMA": app.settings.ledger_schema,
    }
    for moment, expected in (("before", []), ("after", ["told"])):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, table(app), moment],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        drain(app)
        assert told == expected


# -- what is refused ---------------------------------------------------------------------------------------------


def test_a_connection_to_another_database_is_refused(app: Rowlock, told: list, postgres):
    other = sqlite3.connect(":memory:")
    with closing(other), pytest.raises(ConfigurationError, match="must be to the ledger's database"):
        other.execute("CREATE TABLE filings (accession PRIMARY KEY, company)")
        file(app, other)
    if app.ledger.dialect == "postgresql":
        with psycopg.connect(postgres.url, autocommit=True) as admin:
            name = f"other_{app.settings.ledger_schema}"
            admin.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(postgres.url, dbname=name) as elsewhere:
            elsewhere.execute("CREATE TABLE filings (accession text PRIMARY KEY, company text)")
            outbox, row = app.outbox("alerts"), {"accession": "a"}
            with pytest.raises(ConfigurationError, match="has no ledger's tables"):
                outbox.insert_once(elsewhere, "filings", row, unique=["accession"], message=1)
            elsewhere.rollback()
    assert told == []


def test_without_a_transaction_nothing_is_inserted(app: Rowlock, told: list):
    if app.ledger.dialect == "sqlite":
        connection = sqlite3.connect(app.ledger.url.database, isolation_level=None)
    else:
        connection = psycopg.connect(app.settings.ledger_url, autocommit=True)
    with closing(connection), pytest.raises(Refused, match="autocommit"):
        file(app, connection)
    assert sql(app.ledger, "SELECT * FROM {s}filings") == []


def test_a_flow_that_nobody_knows(app: Rowlock, told: list):
    with pytest.raises(UnknownFlow), app.ledger.engine.begin() as connection:
        app.outbox("typo").insert_once(
            connection, table(app), {"accession": "a", "company": "c"}, unique=["accession"], message=1
        )
    assert sql(app.ledger, "SELECT * FROM {s}filings") == []


def test_the_key_names_the_row(app: Rowlock, told: list):
    assert _key("t", {"b": 2, "a": "x"}, ["b", "a"]) == 't["x", 2]'
    assert _key("t", {"a": 1}, ["a"]) != _key("t", {"a": "1"}, ["a"])
    long = _key("t", {"a": "x" * 300}, ["a"])
    assert len(long) <= 255
    assert long != _key("t", {"a": "x" * 301}, ["a"])
    with app.ledger.engine.begin() as connection:
        assert file(app, connection, "y" * 400)
    drain(app)
    assert len(told) == 1


def test_names_are_keys_even_with_odd_characters(app: Rowlock, told: list):
    with app.ledger.engine.begin() as connection:
        assert file(app, connection, "line\nbreak é")
    drain(app)
    assert told == [{"filing": "line\nbreak é"}]
