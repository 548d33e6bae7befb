"""What a worker does when it can no longer be sure that it holds anything."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rowlock import LeaseLost, LedgerUnavailable, RetryLater
from tests.support.ledgers import find, sql, take_over
from tests.support.waiting import eventually


class Silence:
    """Makes one instance's heartbeats fail, as a cut cable would."""

    def __init__(self, instance, monkeypatch):
        self.broken = threading.Event()
        real = instance._ledger.run

        def run(name, /, **params):
            if self.broken.is_set():
                raise LedgerUnavailable("no route to the ledger")
            return real(name, **params)

        monkeypatch.setattr(instance._ledger, "run", run)


def test_handlers_are_stopped_before_the_lease_could_be_given_away(make_app, monkeypatch):
    """The local deadline ends first: an async handler is cancelled while the ledger still counts it as the holder."""
    app = make_app(lease_seconds=1.5)
    stopped = []
    started = threading.Event()

    @app.flow("long")
    async def long(record):
        started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            stopped.append((record.lost, take_over(app.ledger), find(app.ledger, record.id).status))
            raise

    [record_id] = app.enqueue("long", [1]).ids
    worker = app.worker()
    silence = Silence(worker.instance, monkeypatch)
    worker.start()
    try:
        assert started.wait(20)
        first = worker.instance.id
        app.ledger.set_flow_state("long", "paused", "one run is enough")
        silence.broken.set()
        eventually(lambda: stopped, "the cancellation")
        assert stopped == [(True, (0, 0), "processing")]
        silence.broken.clear()
        eventually(lambda: worker.instance.id != first and worker.instance.alive, "the new incarnation")
        eventually(lambda: find(app.ledger, record_id).status == "pending", "the takeover")
    finally:
        worker.stop()
        worker.join(20)


def test_a_thread_that_went_on_is_refused_and_the_worker_comes_back_by_itself(make_app, monkeypatch):
    app = make_app(lease_seconds=1.5)
    first_run, release = threading.Event(), threading.Event()
    refused, completed_by = [], []
    sql(app.ledger, "CREATE TABLE {s}effects (token bigint)")
    schema = f'"{app.settings.ledger_schema}".' if app.ledger.dialect == "postgresql" else ""

    @app.flow("pay")
    def pay(record):
        if not first_run.is_set():
            first_run.set()
            release.wait(20)
        try:
            with record.transaction() as tx:
                tx.execute(f"INSERT INTO {schema}effects VALUES (:token)", {"token": record.token})
            completed_by.append(record.token)
        except LeaseLost as error:
            refused.append(error)
            raise

    app.enqueue("pay", [1])
    worker = app.worker()
    silence = Silence(worker.instance, monkeypatch)
    worker.start()
    try:
        assert first_run.wait(20)
        silence.broken.set()
        eventually(lambda: not worker.instance.alive, "the end of the lease")
        silence.broken.clear()
        eventually(lambda: completed_by, "the second run")
        release.set()
        eventually(lambda: refused, "the refusal")
        eventually(lambda: worker.instance.counters.stale_refused >= 1, "the count")
    finally:
        release.set()
        worker.stop()
        worker.join(20)
    assert sql(app.ledger, "SELECT token FROM {s}effects") == [(token,) for token in completed_by]
    assert len(completed_by) == 1


def test_an_instance_that_was_declared_dead_registers_anew(make_app):
    app = make_app(lease_seconds=30)

    @app.flow("x")
    def x(record):
        return None

    worker = app.worker()
    worker.start()
    try:
        old = worker.instance.id
        sql(app.ledger, f"UPDATE {{s}}service_instances SET state = 'dead' WHERE id = {old}")
        worker.instance.beat()
        assert worker.instance.id > old
        app.enqueue("x", [1])
        eventually(lambda: worker.instance.counters.completed == 1, "work under the new id")
    finally:
        worker.stop()
        worker.join(20)


def test_the_seconds_left_shrink_and_end(make_app, monkeypatch):
    app = make_app(lease_seconds=1)
    app.flow("x")(lambda record: None)
    app.enqueue("x", [1])
    processor = app.processor()
    silence = Silence(processor.instance, monkeypatch)
    with processor:
        [record] = processor.claim_records_batch("x", 1)
        assert 0 < record.seconds_left < 1
        silence.broken.set()
        eventually(lambda: record.seconds_left == 0, "the end of the lease")
        with pytest.raises(LeaseLost, match="write nothing"), record.transaction():
            pass
        silence.broken.clear()


def test_settlings_whose_reply_was_lost_are_re_read_and_the_claims_adopted(make_app, monkeypatch):
    """Every third exchange commits, and its reply is lost: nothing is done twice, nothing is forgotten."""
    app = make_app(lease_seconds=3600)  # nobody may wait for its end
    seen, calls = [], []

    @app.flow("x")
    def x(record):
        seen.append(record.payload)

    app.enqueue("x", range(300))
    worker = app.worker(until_empty=True)
    real = worker._control.exchange

    def exchange(*arguments):
        result = real(*arguments)
        calls.append(1)
        if len(calls) % 3 == 0 and (result[0] or result[1]):
            raise LedgerUnavailable("the reply was lost")
        return result

    monkeypatch.setattr(worker._control, "exchange", exchange)
    worker.start()
    assert worker.join(60)
    assert sorted(seen) == list(range(300))
    assert worker.instance.counters.completed == 300
    assert worker.instance.counters.stale_refused == 0


def test_a_hand_back_whose_reply_was_lost_is_not_a_stale_write(app, monkeypatch):
    runs = []

    @app.flow("x")
    def x(record):
        runs.append(record.attempt)
        if len(runs) == 1:
            raise RetryLater(0.01)

    app.enqueue("x", [1])
    worker = app.worker(until_empty=True)
    real, calls = worker._control.release, []

    def release(*arguments):
        result = real(*arguments)
        calls.append(1)
        if len(calls) == 1:
            raise LedgerUnavailable("the reply was lost")
        return result

    monkeypatch.setattr(worker._control, "release", release)
    worker.start()
    assert worker.join(30)
    assert runs == [1, 1]
    assert worker.instance.counters.completed == 1
    assert worker.instance.counters.stale_refused == 0


def test_a_claim_that_arrives_when_the_deadline_just_passed_is_adopted_if_the_next_heartbeat_is_in_time(
    make_app, monkeypatch
):
    """The ledger says that we hold it and our heartbeat keeps it: nobody else will ever take it over."""
    app = make_app(lease_seconds=1.5)
    app.flow("pay")(lambda record: None)
    worker = app.worker()
    real = worker._settler.exchange
    late = threading.Event()

    def exchange(holder, wishes):
        claimed = real(holder, wishes)
        if claimed and not late.is_set():
            late.set()
            worker.instance._deadline = 0.0
        return claimed

    monkeypatch.setattr(worker._settler, "exchange", exchange)
    monkeypatch.setattr(worker._watchdog, "look", lambda: None)  # it looks now and then: not at this moment
    [record_id] = app.enqueue("pay", [1]).ids
    with worker:
        first = worker.instance.id
        assert late.wait(20)
        worker.instance.beat()
        eventually(lambda: find(app.ledger, record_id).status == "completed", "the completion")
        assert worker.instance.id == first
