"""A full disk: a clear error, nothing half-done, and a worker that goes on when there is room again."""

from __future__ import annotations

import threading

import pytest

from rowlock import LedgerFull
from tests.support.ledgers import sql
from tests.support.waiting import eventually


class Disk:
    """Fills the ledger's disk as far as the database can tell, and frees it again."""

    def __init__(self, app, table):
        self.app, self.table, self.postgresql = app, table, app.ledger.dialect == "postgresql"
        self.schema = f'"{app.settings.ledger_schema}".'

    def fill(self):
        if self.postgresql:
            sql(
                self.app.ledger,
                f"CREATE FUNCTION {self.schema}full() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN RAISE EXCEPTION ''could not extend file'' USING ERRCODE = ''53100''; END'",
            )
            sql(
                self.app.ledger,
                f"CREATE TRIGGER full_disk BEFORE INSERT ON {self.schema}{self.table} FOR EACH ROW EXECUTE FUNCTION {self.schema}full()",
            )
        else:
            sql(
                self.app.ledger,
                f"CREATE TRIGGER full_disk BEFORE INSERT ON {self.table} BEGIN "
                "SELECT RAISE(ABORT, 'database or disk is full'); END",
            )

    def free(self):
        on = f" ON {self.schema}{self.table}" if self.postgresql else ""
        sql(self.app.ledger, f"DROP TRIGGER full_disk{on}")


@pytest.fixture
def app(app):
    app.done = threading.Event()

    @app.flow("x")
    def x(record):
        app.done.set()

    app.enqueue("x", ["first"])
    return app


def test_an_enqueue_is_refused_whole(app):
    disk = Disk(app, "processing_queue")
    disk.fill()
    with pytest.raises(LedgerFull, match="Free space"):
        app.enqueue("x", range(10), key=str)
    disk.free()
    assert app.enqueue("x", range(10), key=str).accepted == 10


def test_a_worker_keeps_its_outcomes_until_there_is_room(app):
    disk = Disk(app, "processing_history")
    disk.fill()
    with app.worker() as worker:
        assert app.done.wait(20)
        eventually(lambda: worker._settler.pending == 1, "an outcome that cannot be settled")
        disk.free()
        eventually(lambda: worker.instance.counters.completed == 1, "the settling")
    assert sql(app.ledger, "SELECT status FROM {s}processing_history") == [("completed",)]


def test_sqlite_itself_says_so_in_these_words(app):
    if app.ledger.dialect != "sqlite":
        pytest.skip("PostgreSQL has a code for it")
    app.enqueue("x", ["x" * 100_000] * 5)
    with app.ledger.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    from sqlalchemy import event

    @event.listens_for(app.ledger.engine, "checkout")
    def limit(connection, *_):
        connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(LedgerFull):
        app.enqueue("x", ["x" * 500_000] * 10)
