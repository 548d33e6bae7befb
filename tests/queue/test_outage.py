"""A PostgreSQL server that crashes, restarts and cuts connections under a worker."""

from __future__ import annotations

import psycopg
import pytest

from rowlock import Backoff, LedgerUnavailable, Rowlock, Settings
from rowlock.databases.local_postgres import LocalPostgres
from rowlock.ledger.ledger import Ledger
from tests.support.ledgers import sql
from tests.support.waiting import eventually


@pytest.fixture
def server():
    with LocalPostgres() as own:
        yield own


@pytest.fixture
def app(server):
    settings = Settings(ledger_url=server.url, lease_seconds=30, poll_seconds=0.2)
    with Ledger.open(settings) as ledger:
        ledger.schema.migrate()
        sql(ledger, "CREATE TABLE public.effects (record_id bigint)")
    with Rowlock(settings=settings) as app:
        # An outage spends attempts of handlers that write; here it must not exhaust them.
        @app.flow("pay", max_attempts=100, backoff=Backoff(0.01, 0.1))
        def pay(record):
            with record.transaction() as tx:
                tx.execute("INSERT INTO public.effects VALUES (:id)", {"id": record.id})

        yield app


def effects(app):
    """Asked on a connection of its own: the app's may be broken at any moment."""
    with psycopg.connect(app.settings.ledger_url) as connection:
        return connection.execute("SELECT count(*), count(DISTINCT record_id) FROM public.effects").fetchone()


def test_a_worker_outlives_crashes_of_the_server(app, server):
    app.enqueue("pay", range(1500))
    worker = app.worker(until_empty=True)
    worker.start()
    for part in (200, 600):
        eventually(lambda part=part: effects(app)[0] >= part, "progress")
        server.crash()
    assert worker.join(60)
    assert effects(app) == (1500, 1500)


def test_a_worker_outlives_terminated_backends(app):
    app.enqueue("pay", range(1000))
    worker = app.worker(until_empty=True)
    worker.start()
    for part in (100, 300, 500):
        eventually(lambda part=part: effects(app)[0] >= part, "progress")
        with psycopg.connect(app.settings.ledger_url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rowlock'"
            )
    assert worker.join(60)
    assert effects(app) == (1000, 1000)


def test_an_enqueue_after_a_restart_needs_no_second_try(app, server):
    app.enqueue("pay", [1])
    server.crash()
    assert app.enqueue("pay", [2]).accepted == 1


def test_a_ledger_that_is_away_is_a_clear_error(app, server):
    app.enqueue("pay", [1])
    server.stop(immediate=True)
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        app.enqueue("pay", [2])
