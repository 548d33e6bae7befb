"""One attempt: it streams, publishes only while it holds its input, and says what kind of trouble it met."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel

from rowlock import LeaseLost, Reject, Settings, StorageUnavailable
from rowlock.databases.manager import DatabaseManager
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.query import SqlQuery
from rowlock.jobs.storage import ArtifactStore
from rowlock.jobs.writing import write_export

INPUT = {"indexKey": "ABC", "effectiveDate": 20240202, "asofindicator": "CLS"}
PREFIX = "exports/2026/01/10/J20260110_000777"
PATH = f"{PREFIX}/ABC_20240202_CLS.csv"
LEVELS = [("ABC", 20240202, "1.10"), ("ABC", 20240203, "2.20"), ("DEF", 20240202, "3.30")]


class Values(BaseModel):
    value: str | None


def write(exporter, store, raw=INPUT, **given):
    return write_export(exporter, exporter.validate(raw), store, prefix=PREFIX, **given)


def exporter(produce, **given) -> Exporter:
    return Exporter(name="levels", produce=produce, **given)


@pytest.fixture
def databases(kind, tmp_path, request):
    """A database with index levels in it, of either kind."""
    create = "CREATE TABLE levels_{} (index_key text, day integer, level numeric(10, 2), at timestamptz)"
    name = uuid4().hex[:12]
    if kind == "postgresql":
        url = request.getfixturevalue("postgres").url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(create.format(name))
            for row in LEVELS:
                connection.execute(f"INSERT INTO levels_{name} VALUES (%s, %s, %s, '2024-02-02Z')", row)
    else:
        url = f"sqlite:///{tmp_path}/source.db"
        with sqlite3.connect(tmp_path / "source.db") as connection:
            connection.execute(create.format(name))
            connection.executemany(f"INSERT INTO levels_{name} VALUES (?, ?, ?, '2024-02-02')", LEVELS)
        connection.close()
    with DatabaseManager(Settings(databases={"hub": {"url": url}})) as manager:
        manager.table = f"levels_{name}"
        yield manager


@pytest.fixture
def files(tmp_path):
    return ArtifactStore.open((tmp_path / "files").as_uri())


def content(store, written):
    return b"".join(store.read(written.path))


# -- producers -------------------------------------------------------------------------------------------------


def test_the_file_is_where_the_contract_says_with_its_figures(store):
    def produce(fields, context):
        context.progress(0.5)
        yield {"index": fields.indexKey, "level": 1}

    told = []
    written = write(exporter(produce), store, token=4, progress=told.append)
    data = b"index,level\nABC,1\n"
    assert content(store, written) == data
    assert (written.path, written.key) == (f"{store.url}/{PATH}", "ABC/20240202/CLS")
    assert (written.rows, written.bytes, written.sha256) == (1, len(data), hashlib.sha256(data).hexdigest())
    assert written.content_type == "text/csv; charset=utf-8"
    assert told == [0.5]


def test_a_lost_lease_stops_between_batches_and_closes_the_producer(store):
    closed = []

    def produce(_fields):
        try:
            for number in range(10**9):
                yield {"n": number}
        finally:
            closed.append(True)

    calls = []

    def check():
        calls.append(1)
        if len(calls) == 3:
            raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        write(exporter(produce), store, check=check)
    assert closed == [True]
    assert list(store.list()) == []


def test_a_lease_that_is_lost_at_the_end_publishes_nothing(store):
    calls = []

    def check():  # once for the only batch, once before the file appears
        calls.append(1)
        if len(calls) == 2:
            raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        write(exporter(lambda _: [{"n": 1}]), store, check=check)
    assert list(store.list()) == []


def test_a_cancelled_job_is_noticed_now_and_then(files, monkeypatch):
    monkeypatch.setattr("rowlock.jobs.writing._BEAT_SECONDS", 0)

    def progress(_done):
        raise LeaseLost("cancelled")

    with pytest.raises(LeaseLost, match="cancelled"):
        write(exporter(lambda _: ({"n": n} for n in range(10**9))), files, progress=progress)
    assert list(files.list()) == []


def test_what_a_producer_raises_passes_as_it_is(store):
    def produce(_fields):
        yield {"n": 1}
        raise FileNotFoundError("mine")

    with pytest.raises(FileNotFoundError, match="mine"):
        write(exporter(produce), store)
    assert list(store.list()) == []


@pytest.mark.parametrize("returned", [b"bytes", "text", None, 5])
def test_a_producer_that_returns_no_rows_is_told_so(files, returned):
    with pytest.raises(Reject, match="yields its rows"):
        write(exporter(lambda _: returned), files)


def test_a_bucket_that_is_not_there_is_dead_at_once(s3):
    with pytest.raises(Reject, match="NoSuchBucket"):
        write(exporter(lambda _: [{"n": 1}]), ArtifactStore.open("s3://nowhere-to-be", **s3.options))


def test_a_server_that_is_away_is_tried_again(s3):
    store = ArtifactStore.open("s3://tests", **{**s3.options, "endpoint": "http://127.0.0.1:9"})
    with pytest.raises(StorageUnavailable):
        write(exporter(lambda _: [{"n": 1}]), store)


# -- queries ---------------------------------------------------------------------------------------------------


def query(databases, text, **given) -> Exporter:
    return exporter(SqlQuery("hub", text.format(t=databases.table)), **given)


SELECT = "SELECT index_key, day, level FROM {t} WHERE index_key = :indexKey AND day >= :effectiveDate ORDER BY day -- all"


def test_a_query_becomes_csv(databases, store):
    written = write(query(databases, SELECT), store, databases=databases)
    lines = content(store, written).decode().splitlines()
    assert lines[0] == "index_key,day,level"
    assert [line.split(",")[:2] for line in lines[1:]] == [["ABC", "20240202"], ["ABC", "20240203"]]
    assert written.rows == 2


def test_a_query_without_rows_becomes_a_heading(databases, files):
    none = {**INPUT, "indexKey": "NONE"}
    for format_, wanted in (("csv", b"index_key,day,level\n"), ("jsonl", b"")):
        written = write(query(databases, SELECT, format=format_), files, none, databases=databases)
        assert (content(files, written), written.rows) == (wanted, 0)
    written = write(query(databases, SELECT, format="parquet"), files, none, databases=databases)
    assert pq.read_table(io.BytesIO(content(files, written))).column_names == ["index_key", "day", "level"]


def test_parquet_has_postgresqls_own_types(databases, files):
    if databases.dialect("hub") != "postgresql":
        pytest.skip("SQLite's columns have no types")
    written = write(
        query(databases, "SELECT * FROM {t} ORDER BY 1, 2", format="parquet"), files, databases=databases
    )
    table = pq.read_table(io.BytesIO(content(files, written)))
    assert table.schema.types == [pa.string(), pa.int32(), pa.decimal128(10, 2), pa.timestamp("us", tz="UTC")]
    assert table.column("level").to_pylist() == [Decimal("1.10"), Decimal("2.20"), Decimal("3.30")]


HOSTILE = [
    "'; DROP TABLE x; --", "\\", "\\'", "'' OR 1=1 --", "$1", "$$", ":value", "%s %(x)s", "E'\\x41'", "a\nb", "ünï", "",
    "') TO PROGRAM 'touch x", "{t}", None,
]  # fmt: skip


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_value_stays_a_value(databases, files, hostile, format_):
    """It comes back as it went in, whichever way it is bound."""
    text = "SELECT CAST(:value AS text) AS a, ':value' AS b, CAST(:value AS text) AS c"
    exact = exporter(SqlQuery("hub", text), model=Values, format=format_)
    written = write(exact, files, {"value": hostile}, databases=databases)
    import csv
    import json

    data = content(files, written).decode()
    row = json.loads(data) if format_ == "jsonl" else next(csv.DictReader(io.StringIO(data, newline="")))
    wanted = hostile if format_ == "jsonl" else hostile or ""
    assert row == {"a": wanted, "b": ":value", "c": wanted}


def test_a_value_that_no_text_can_hold_is_dead_at_once(databases, files):
    if databases.dialect("hub") != "postgresql":
        pytest.skip("SQLite takes it")
    exact = exporter(SqlQuery("hub", "SELECT :value::text"), model=Values)
    with pytest.raises(Reject, match="hub"):
        write(exact, files, {"value": "a\x00b"}, databases=databases)


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
@pytest.mark.parametrize(
    "text",
    ["SELECT nothing FROM {t}", "SELECT * FROM no_such_table", "SELEC 1", "DELETE FROM {t} RETURNING *"],
)
def test_a_query_that_is_wrong_is_dead_at_once(databases, files, text, format_):
    with pytest.raises(Reject, match="database 'hub' fails"):
        write(query(databases, text, format=format_), files, databases=databases)
    assert list(files.list()) == []
    assert write(query(databases, "SELECT * FROM {t}"), files, databases=databases).rows == len(LEVELS)


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_a_database_that_is_away_is_tried_again(files, format_):
    settings = Settings(databases={"hub": {"url": "postgresql://user:s3cret@127.0.0.1:9/x"}})
    with DatabaseManager(settings) as databases, pytest.raises(Exception, match=r"refused|Connect") as caught:
        write(exporter(SqlQuery("hub", "SELECT 1"), format=format_), files, databases=databases)
    assert not isinstance(caught.value, Reject)
    assert "s3cret" not in str(caught.value)


def test_a_copy_reads_one_moment_and_can_be_stopped_in_the_middle(postgres, files):
    calls = []

    def check():
        calls.append(1)
        if len(calls) == 3:
            raise LeaseLost("gone")

    many = exporter(SqlQuery("hub", "SELECT n, repeat('x', 100) FROM generate_series(1, 1000000) n"))
    with DatabaseManager(Settings(databases={"hub": {"url": postgres.url}})) as databases:
        with pytest.raises(LeaseLost):
            write(many, files, databases=databases, check=check)
        modes = exporter(
            SqlQuery(
                "hub",
                "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')",
            )
        )
        written = write(modes, files, databases=databases)
        assert content(files, written).splitlines()[1] == b"repeatable read,on"
        with psycopg.connect(postgres.url) as connection:
            left = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 1000000)%' AND pid <> pg_backend_pid() AND state = 'active'"
            ).fetchone()
    assert left == (0,)


def test_a_query_that_is_stopped_lets_go_of_its_connection_at_once(databases, files):
    def check():
        raise LeaseLost("gone")

    with pytest.raises(LeaseLost) as caught:  # whose traceback keeps every frame alive
        write(query(databases, SELECT, format="jsonl"), files, databases=databases, check=check)
    assert caught.tb is not None
    assert [engine.pool.checkedout() for engine in databases._engines.values()] == [0]


def test_a_connection_that_the_server_has_ended_is_not_used_again(postgres, files):
    with DatabaseManager(Settings(databases={"hub": {"url": postgres.url}})) as databases:
        me = exporter(SqlQuery("hub", "SELECT pg_backend_pid()"), format="csv")
        pids = [int(content(files, write(me, files, databases=databases)).split()[1])]
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", pids)
        written = write(me, files, databases=databases, token=2)
        assert int(content(files, written).split()[1]) not in pids


# -- deaths -----------------------------------------------------------------------------------------------------

ATTEMPT = """
import json, os, sys
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.storage import ArtifactStore
from rowlock.jobs.writing import write_export

url, options, raw, prefix = (json.loads(word) for word in sys.argv[1:])

def produce(fields):
    for number in range(40):
        yield os.urandom(1024 * 1024)
        if number == 30:
            print("in the middle", flush=True)
            sys.stdin.read()

exporter = Exporter(name="levels", produce=produce)
write_export(exporter, exporter.validate(raw), ArtifactStore.open(url, **options), prefix=prefix, token=1)
"""


def test_a_worker_killed_in_the_middle_of_an_upload_leaves_nothing_at_the_path(address, store):
    import json

    arguments = [json.dumps(word) for word in (*address, INPUT, PREFIX)]
    attempt = subprocess.Popen(
        [sys.executable, "-c", ATTEMPT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert attempt.stdout.readline() == b"in the middle\n"
    finally:
        os.kill(attempt.pid, signal.SIGKILL)
        attempt.communicate()
    assert not store.exists(PATH)
    assert [one.key for one in store.list("exports")] == []
    written = write(exporter(lambda _: [{"n": 1}]), store, token=2)
    assert written.path == store.url_of(PATH)
    store.sweep_attempts(datetime.now(UTC) + timedelta(hours=1))
    assert [one.key for one in store.list()] == [PATH]
