"""What lost attempts leave is swept, long after the job's end; what counts is never touched."""

from __future__ import annotations

import pytest

from rowlock.jobs.finalizer import SWEEP_FLOW
from rowlock.jobs.handling import folder_of
from rowlock.jobs.storage import ATTEMPTS
from rowlock.ledger.ledger_clock import LedgerClock
from tests.jobs.test_export_jobs import declare, ended, inputs
from tests.support.ledgers import sql
from tests.support.waiting import eventually

DAY = 86_400


@pytest.fixture
def app(make_app, address):
    url, options = address
    given = {f"storage_{name}": value for name, value in options.items()}
    # A short lease: when two days go by in the ledger, whoever held something there takes it again at the next heartbeat.
    app = make_app(storage_url=url, finalizer_seconds=0.05, lease_seconds=1.5, **given)
    declare(app, set())
    return app


@pytest.fixture
def later(app):
    """Two days go by in the ledger; files are as old as they look from there."""
    with LedgerClock(app.ledger) as clock:
        yield lambda: clock.advance(2 * DAY)


def leave(app, job, name, data):
    """As an attempt does that published its file and then found that it had lost."""
    key = f"{folder_of(job.key)}/{name}"
    app.store.put(key, data, content_type="text/csv")
    return key


def keys(app):
    return sorted(one.key for one in app.store.list())


def swept(app):
    return [
        row[0]
        for row in sql(
            app.ledger, f"SELECT result FROM {{s}}processing_history WHERE flow_name = '{SWEEP_FLOW}'"
        )
    ]


def finish(app, *names):
    """A job, and the keys of everything that it made."""
    job, _ = app.jobs.submit(inputs(*names))
    job = ended(app, job)
    eventually(lambda: app.store.exists(f"{folder_of(job.key)}/manifest.json"), "the manifest")
    return job, keys(app)


def test_leftovers_are_swept_and_files_that_count_are_kept(app, later):
    with app.worker():
        job, made = finish(app, "ABC", "DEF")
        lost = leave(app, job, "ABC_20240202_CLS.7-0123456789ab.csv", b"lost")
        staged = f"{ATTEMPTS}/7-0123/ABC.csv"
        app.store.put(staged, b"staged", content_type="text/csv")
        assert {lost, staged} <= set(keys(app))
        later()
        eventually(lambda: swept(app), "the sweep")
        assert keys(app) == made
        eventually(lambda: len(swept(app)) == 1)


def test_nothing_is_swept_soon_after_the_end(app):
    with app.worker():
        job, _ = finish(app, "ABC")
        leave(app, job, "lost.csv", b"lost")
    assert sql(app.ledger, f"SELECT 1 FROM {{s}}flows WHERE flow_name = '{SWEEP_FLOW}'")
    assert not sql(app.ledger, f"SELECT 1 FROM {{s}}record_keys WHERE flow_name = '{SWEEP_FLOW}'")


def test_another_ledgers_files_are_never_swept(app, make_app, later):
    """Two ledgers that share a storage by mistake have jobs of the same names."""
    app.store.belongs_to("another ledger")
    with app.worker():
        job, _ = finish(app, "ABC")
        theirs = leave(app, job, "GHI_20240202_CLS.csv", b"of the other ledger")
        later()
        eventually(lambda: swept(app), "the sweep")
    assert theirs in keys(app)
    assert "another ledger" in str(swept(app))


def test_a_job_whose_inputs_have_been_forgotten_is_not_swept(app, later):
    with app.worker():
        _, made = finish(app, "ABC", "DEF")
        app.ledger.prune(0, dead_too=False, limit=1)
        later()
        eventually(lambda: swept(app), "the sweep")
    assert keys(app) == made


def test_a_file_is_not_deleted_once_its_job_is_driven_again(app, later):
    """An attempt of the re-driven job may find it there with the right content, and take it for its own."""
    handler = app.flows[SWEEP_FLOW].handler
    with app.worker():
        job, _ = finish(app, "ABC")
    lost = leave(app, job, "lost.csv", b"lost")
    sql(app.ledger, "UPDATE {s}export_job SET status = 'RUNNING'")
    assert not handler._delete(job, app.store, lost)
    assert lost in keys(app)
    sql(app.ledger, "UPDATE {s}export_job SET status = 'COMPLETED'")
    assert handler._delete(job, app.store, lost)
    assert lost not in keys(app)
