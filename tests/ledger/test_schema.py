"""Migrations: safe together, refused when code and tables differ, printable."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from rowlock import Rowlock
from rowlock.errors import SchemaMismatch
from rowlock.ledger.ledger import Ledger
from rowlock.ledger.schema import _split
from tests.support.ledgers import sql

MIGRATE = """
import sys
from rowlock.ledger.ledger import Ledger
from rowlock.settings import Settings
with Ledger.open(Settings(ledger_url=sys.argv[1], ledger_schema=sys.argv[2])) as ledger:
    print(len(ledger.schema.migrate()))
"""


def shape(ledger):
    """Tables, columns and indexes, to compare one schema with another."""
    if ledger.dialect == "sqlite":
        return sql(ledger, "SELECT type, name, sql FROM sqlite_master ORDER BY type, name")
    schema = ledger.settings.ledger_schema
    return [
        [tuple(str(v).replace(schema, "S") for v in row) for row in sql(ledger, query, (schema,))]
        for query in (
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2",
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %s ORDER BY indexname",
        )
    ]


def test_an_empty_ledger_is_version_0_and_a_migrated_one_the_latest(settings):
    with Ledger.open(settings) as ledger:
        assert ledger.schema.version() == 0
        assert ledger.schema.migrate() == [
            f"{n:04d}_{name}" for n, (name, _) in ledger.schema.migrations.items()
        ]
        assert ledger.schema.version() == ledger.schema.latest
        assert ledger.schema.migrate() == []
        ledger.schema.check()


def test_threads_that_migrate_at_once_do_it_once(settings):
    def migrate(_):
        with Ledger.open(settings) as ledger:
            return len(ledger.schema.migrate())

    with ThreadPoolExecutor(6) as pool:
        applied = sorted(pool.map(migrate, range(6)))
    assert applied[:-1] == [0] * 5
    assert applied[-1] > 0


def test_processes_that_migrate_at_once_do_it_once(settings):
    command = [sys.executable, "-c", MIGRATE, settings.ledger_url, settings.ledger_schema]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    applied = sorted(process.communicate(timeout=60)[0].strip() for process in running)
    assert applied[:-1] == ["0", "0"]
    assert int(applied[-1]) > 0


def test_a_ledger_newer_than_the_code_is_refused(ledger):
    sql(ledger, "INSERT INTO {s}ledger_version VALUES (9999, 'future', 'now')")
    for refuse in (ledger.schema.check, ledger.schema.migrate):
        with pytest.raises(SchemaMismatch, match="Upgrade rowlock"):
            refuse()


def test_a_ledger_older_than_the_code_is_refused(ledger):
    sql(ledger, "DELETE FROM {s}ledger_version")
    with pytest.raises(SchemaMismatch, match="Run: rowlock migrate"):
        ledger.schema.check()


def test_an_app_creates_a_sqlite_ledger_but_not_a_postgresql_one(settings):
    with Rowlock(settings=settings) as app:
        if settings.ledger_url.startswith("sqlite"):
            assert app.ledger.schema.version() == app.ledger.schema.latest
        else:
            with pytest.raises(SchemaMismatch, match="rowlock migrate"):
                app.enqueue("any", {"a": 1})


def test_tables_that_are_missing_are_a_schema_mismatch(settings):
    with Ledger.open(settings) as ledger, pytest.raises(SchemaMismatch, match="rowlock migrate"):
        ledger.run("flows")


def test_the_printed_script_makes_the_same_tables(settings_for, ledger):
    with Ledger.open(settings_for()) as by_hand:
        script = by_hand.schema.script()
        with by_hand.engine.connect() as connection:
            driver = connection.connection.driver_connection
            if by_hand.dialect == "postgresql":
                driver.autocommit = True
            for statement in [script] if by_hand.dialect == "postgresql" else _split(script):
                driver.execute(statement)
        by_hand.schema.check()
        assert by_hand.schema.migrate() == []
        assert shape(by_hand) == shape(ledger)


def test_every_statement_of_one_dialect_that_all_share_is_in_the_others(ledger):
    """The base class runs these by name in every dialect."""
    shared = {
        "attempts", "bury_instances", "dead_count", "dead_groups", "dead_ids", "flow_find", "flow_live",
        "flow_register", "flows", "held", "instance_beat", "instance_end", "instance_register", "instances",
        "live_records", "lock_fence", "lock_look", "lock_wait", "progress", "prune_instances", "record_by_key",
        "record_find", "settled_records", "tick", "time", "totals",
    }  # fmt: skip
    assert shared <= set(ledger.statements)
