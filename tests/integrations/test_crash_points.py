"""`crash_points` finds handlers whose effects do not survive a kill, and lets the good ones pass."""

from __future__ import annotations

import os
import textwrap
import threading

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine.default import DefaultDialect

from rowlock.integrations.pytest.boundaries import Boundaries
from rowlock.integrations.pytest.drivers import watch_sqlalchemy

pytest_plugins = ["pytester"]

HELPERS = """
    import json, os, sqlite3
    from contextlib import closing
    from pathlib import Path

    import pytest
    from sqlalchemy import create_engine, text

    from rowlock import Backoff, Rowlock, crash_point

    app = Rowlock("sqlite:///kept.db")
    INSERT = "INSERT INTO effects VALUES (:key)"

    def setup(app):
        with app.ledger.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE effects (record_key text)")

    def effects(app):
        with app.ledger.engine.connect() as connection:
            return [key for key, in connection.exec_driver_sql("SELECT record_key FROM effects ORDER BY 1")]

    @pytest.fixture
    def survives(rowlock_app, crash_points):
        rowlock_app(app)
        return lambda flow="f", payload=1, **more: crash_points(
            app, flow, payload, **{"setup": setup, "effects": effects, **more}
        )
"""


@pytest.fixture
def verdict(pytester, request):
    """Runs one handler and its test on one kind of ledger; the words of the failure, or None."""

    def run(source, kind="sqlite"):
        pytester.makepyfile(test_it=textwrap.dedent(HELPERS) + textwrap.dedent(source))
        where = request.getfixturevalue("postgres").url if kind == "postgresql" else kind
        done = pytester.runpytest_subprocess(
            "-p", "no:cacheprovider", "-W", "error", f"--rowlock-ledger={where}", "--tb=short"
        )
        said = done.stdout.str()
        if done.ret == 0:
            return None
        assert "EffectsNotOnce" in said, said
        return "\n".join(
            line.removeprefix("E").strip() for line in said.splitlines() if line.startswith("E ")
        )

    return run


GOOD = """
    @app.flow("f")
    def good(record):
        with record.transaction() as tx:
            tx.execute(INSERT, {"key": record.key})

    @app.flow("async", batch=None)
    async def also_good(record):
        async with record.transaction() as tx:
            await tx.aexecute(INSERT, {"key": record.key})

    @app.flow("retried", max_attempts=3, backoff=Backoff(3600, 3600))
    def fails_at_first(record):
        with record.transaction() as tx:
            tx.execute(INSERT, {"key": record.key})
            if record.attempt == 1:
                raise OSError("not today")

    @app.flow("processes", executor="process")
    def in_a_process(record):
        good(record)

    def test_it(survives):
        crashes = survives()
        assert [crash.where for crash in crashes] == [
            "as the handler starts, before the COMMIT of record.transaction(), which carries the completion",
            "before the COMMIT of record.transaction(), which carries the completion",
            "after the COMMIT of record.transaction(), which carries the completion",
        ]

    def test_retries(survives):
        assert len(survives("retried", expect=["crash-1"])) == 6
"""
OTHERS = """
    def test_several_records(survives):
        assert len(survives(payload=[1, 2])) == 6

    def test_other_executors(survives):
        assert len(survives("async")) == len(survives("processes")) == 3
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_handler_that_uses_its_records_transaction_passes(verdict, kind):
    assert verdict(GOOD, kind) is None


def test_whatever_runs_it_and_however_many_there_are(verdict):
    assert verdict(GOOD.partition("    def test_it")[0] + OTHERS) is None


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_effect_in_its_own_transaction_is_found(verdict, kind):
    """The classical bug: the effect commits, the process dies, the record is attempted again."""
    said = verdict(
        """
        @app.flow("f")
        def bad(record):
            with app.ledger.engine.begin() as connection:
                connection.execute(text(INSERT), {"key": record.key})

        def test_it(survives):
            survives()
        """,
        kind,
    )
    assert "flow 'f': of 5 kills, 2 left effects that did not happen exactly once" in said
    assert "killed after the COMMIT of “INSERT INTO effects VALUES (" in said
    assert "and before the completion: 2 effects, expected 1" in said
    assert "effects:  ['crash-1', 'crash-1']" in said


RAW = {
    "sqlite3": (
        "sqlite",
        """
        connection = sqlite3.connect(app.ledger.url.database)
        with closing(connection), connection:
            connection.execute("INSERT INTO effects VALUES (?)", [record.key])
        """,
        "the COMMIT of “INSERT INTO effects VALUES (?)”",
    ),
    "sqlite3 that commits by itself": (
        "sqlite",
        """
        with closing(sqlite3.connect(app.ledger.url.database, isolation_level=None)) as connection:
            connection.execute("INSERT INTO effects VALUES (?)", [record.key])
        """,
        "“INSERT INTO effects VALUES (?)”, which commits by itself",
    ),
    "psycopg": (
        "postgresql",
        """
        import psycopg
        with psycopg.connect(app.settings.ledger_url) as connection:
            connection.execute("INSERT INTO effects VALUES (%s)", [record.key])
        """,
        "the COMMIT of “INSERT INTO effects VALUES (%s)”",
    ),
    "psycopg in a block": (
        "postgresql",
        """
        import psycopg
        with psycopg.connect(app.settings.ledger_url, autocommit=True) as connection:
            with connection.transaction(), connection.transaction():
                connection.execute("INSERT INTO effects VALUES (%s)", [record.key])
        """,
        "the COMMIT of “INSERT INTO effects VALUES (%s)”",
    ),
    "psycopg that commits by itself": (
        "postgresql",
        """
        import psycopg
        with psycopg.connect(app.settings.ledger_url, autocommit=True) as connection:
            connection.execute("INSERT INTO effects VALUES (%s)", [record.key])
        """,
        "“INSERT INTO effects VALUES (%s)”, which commits by itself",
    ),
}


@pytest.mark.parametrize("driver", RAW)
def test_commits_past_sqlalchemy_are_seen(verdict, driver):
    """With the completion in a transaction afterwards, so that only the driver's own commit is between the two."""
    kind, body, words = RAW[driver]
    source = """
        @app.flow("f")
        def bad(record):
    {body}
            with record.transaction():
                pass

        def test_it(survives):
            survives()
    """
    indented = textwrap.indent(textwrap.dedent(body).strip(), " " * 12)
    said = verdict(source.replace("    {body}", indented), kind)
    assert f"killed after {words} and before the COMMIT of record.transaction()" in said
    assert "of 5 kills, 2 left effects" in said


def test_any_driver_below_sqlalchemy_is_seen(tmp_path, monkeypatch):
    """One that we know nothing about: here SQLite, whose own connections nobody watches."""
    monkeypatch.setattr(DefaultDialect, "do_commit", DefaultDialect.do_commit)  # put back at the end
    trace = os.open(tmp_path / "trace", os.O_CREAT | os.O_RDWR)
    watch_sqlalchemy(Boundaries(trace, kill_at=None))
    engine = create_engine(f"sqlite:///{tmp_path}/own.db")

    def write() -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE effects (record_key text)")
            connection.exec_driver_sql("INSERT INTO effects VALUES ('a')")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    engine.dispose()
    os.close(trace)
    reached = (tmp_path / "trace").read_text().splitlines()
    assert reached == ["before the COMMIT of a transaction", "after the COMMIT of a transaction"]


def test_a_programs_own_engine_may_cross_the_fork(verdict):
    """Its pooled connection is the parent's: two processes that talk on it would hear each other's replies."""
    said = verdict(
        """
        engines = []

        def open_engine(app):
            engines.append(create_engine(app.ledger.url))
            with engines[-1].begin() as connection:  # which stays open in the pool
                connection.exec_driver_sql("CREATE TABLE effects (record_key text)")

        def seen(app):
            with engines[-1].connect() as connection:
                return [key for key, in connection.exec_driver_sql("SELECT record_key FROM effects")]

        @app.flow("f")
        def bad(record):
            with engines[-1].begin() as connection:
                connection.execute(text(INSERT), {"key": record.key})

        def test_it(survives):
            try:
                survives(setup=open_engine, effects=lambda app: [*seen(app), *seen(app)])
            finally:
                engines[-1].dispose()
        """,
        "postgresql",
    )
    assert "of 5 kills, 2 left effects" in said
    assert "before the completion: 4 effects, expected 2" in said


def test_an_effect_that_nobody_can_see_is_found_at_the_completion_and_at_marks(verdict):
    said = verdict(
        """
        sent = Path("sent.txt")

        @app.flow("f")
        def bad(record):
            with sent.open("a") as file:
                file.write(record.key + "\\n")
            crash_point("sent")

        def test_it(survives):
            survives(
                setup=lambda app: sent.write_text(""),
                effects=lambda app: sent.read_text().split(),
            )
        """
    )
    assert 'killed at crash_point("sent"), before the completion: 2 effects, expected 1' in said
    assert "killed before the completion: 2 effects, expected 1" in said


def test_the_same_effect_with_a_key_that_the_other_side_knows_passes(verdict):
    assert (
        verdict(
            """
        from rowlock.crashes import _listener

        @app.flow("f")
        def good(record):
            assert crash_point("inert outside of a test") is None
            Path("sent", record.key).write_text("once")

        def make_folder(app):
            Path("sent").mkdir(exist_ok=True)
            for path in Path("sent").iterdir():
                path.unlink()

        def test_it(survives):
            survives(setup=make_folder, effects=lambda app: os.listdir("sent"))
            assert _listener is None  # the test's own process was never touched
        """
        )
        is None
    )


def test_a_record_that_follows_without_a_key_is_found(verdict):
    said = verdict(
        """
        app.flow("next")(lambda record: None)

        @app.flow("f")
        def bad(record):
            app.enqueue("next", record.payload)

        def count(app):
            return app.ledger.run("flow_live", flow="next") and [
                row.record_key for row in app.ledger.run("live_records", flow="next", status=None, limit=9, before=99)
            ]

        def test_it(survives):
            survives(effects=lambda app: len(count(app)), expect=1)
        """
    )
    assert "other effects than expected" in said
    assert "effects:  2" in said


def test_an_effect_that_a_kill_loses_is_found(verdict):
    """Completed first, done afterwards: at most once, which is not once."""
    said = verdict(
        """
        @app.flow("f")
        def bad(record):
            with record.transaction():
                pass
            with app.ledger.engine.begin() as connection:
                connection.execute(text(INSERT), {"key": record.key})

        def test_it(survives):
            survives()
        """
    )
    assert (
        "killed after the COMMIT of record.transaction(), which carries the completion and before the COMMIT"
        in said
    )
    assert "0 effects, expected 1" in said


def test_a_record_that_dies_with_its_first_worker_is_told(verdict):
    said = verdict(
        """
        @app.flow("f", max_deaths=1)
        def frail(record):
            with record.transaction() as tx:
                tx.execute(INSERT, {"key": record.key})

        def test_it(survives):
            survives()
        """
    )
    assert "killed as the handler starts" in said
    assert "records:  f/crash-1 is dead: its workers died 1 times" in said


def test_a_handler_that_fails_without_any_crash_is_told_as_such(verdict):
    said = verdict(
        """
        @app.flow("f", max_attempts=1)
        def broken(record):
            raise ValueError("no")

        def test_it(survives):
            survives()
        """
    )
    assert "flow 'f', even though it was killed by nobody" in said
    assert "f/crash-1 is dead: failed 1 times; at last ValueError: no" in said
