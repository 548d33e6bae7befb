"""Flows within a limit: on threads, on loops, in processes; taken back, lost, explained."""

from __future__ import annotations

import asyncio
import json
import os
import threading

import pytest

from rowlock import ConfigurationError, Refused
from rowlock.leases.limit import Halt
from rowlock.queue.gate import Gate
from rowlock.queue.why import explain
from tests.queue import process_flows
from tests.queue.test_worker import drain
from tests.support.ledgers import find, sql
from tests.support.waiting import eventually


def row(app, name="api"):
    return app.ledger.limits.list(name)[0]


def held(app):
    return sql(app.ledger, "SELECT count(*) FROM {s}processing_queue WHERE holder IS NOT NULL")[0][0]


class Crowd:
    """How many run at once, and the most there ever were."""

    def __init__(self):
        self.now = self.most = 0
        self.lock = threading.Lock()

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1


@pytest.fixture(params=["thread", "async"])
def limited(request, app):
    """A flow of each kind, with eight slots and a limit of two; how many ran at once."""
    crowd = Crowd()
    limit = app.limit("api", rate="1000/s", concurrency=2)

    def handle(record):
        with crowd:
            return record.payload

    async def ahandle(record):
        with crowd:
            await asyncio.sleep(0)
            return record.payload

    app.flow("limited", limit=limit)(handle if request.param == "thread" else ahandle)
    return crowd


def test_handlers_start_only_within_the_limit(app, limited):
    app.enqueue("limited", range(20))
    assert drain(app).completed == 20
    assert 1 <= limited.most <= 2
    assert row(app).reserved >= 20
    eventually(lambda: row(app).in_use == 0, "the last slot given back")


def test_workers_share_one_limit(app, limited, make_app):
    other = make_app(on=app)
    other.flows.update(app.flows)
    app.enqueue("limited", range(30))
    with other.worker():
        drain(app)
    assert sql(app.ledger, "SELECT count(*) FROM {s}processing_history")[0][0] == 30
    assert limited.most <= 2


def test_in_processes_too(make_app, monkeypatch):
    app = make_app()
    monkeypatch.setattr(process_flows.app, "settings", app.settings)
    app.flows.update(process_flows.app.flows)
    ids = app.enqueue("limited_pids", [{"n": n} for n in range(6)]).ids
    try:
        assert drain(app).completed == 6
    finally:
        process_flows.app.close()
    assert os.getpid() not in {json.loads(find(app.ledger, id_).result)["pid"] for id_ in ids}
    assert row(app).reserved >= 6


@pytest.mark.parametrize("executor", ["thread", "async", "process"])
def test_what_waits_for_the_limit_is_handed_back_at_once_when_the_worker_stops(
    make_app, executor, monkeypatch
):
    app = make_app(grace_seconds=3600)
    monkeypatch.setattr(process_flows.app, "settings", app.settings)
    ran = []

    def handle(record):
        ran.append(record.id)

    async def ahandle(record):
        ran.append(record.id)

    if executor == "process":
        app.flows["hourly"] = process_flows.app.flows["hourly"]
    else:
        limit = app.limit("hourly", rate="1/h", concurrency=5)
        app.flow("hourly", limit=limit, timeout=0.1, concurrency=4)(
            handle if executor == "thread" else ahandle
        )
    app.flows["hourly"].limit.acquire().release()  # this hour's
    ids = app.enqueue("hourly", range(10)).ids
    try:
        worker = app.worker()
        worker.start()
        eventually(lambda: row(app, "hourly").in_use == 4, "four that wait")
        assert held(app) == 4  # and no more than could start
        worker.stop()
        assert worker.join(20)
        # They are out of the gate when the worker has ended.
        assert (row(app, "hourly").in_use, row(app, "hourly").waiting) == (0, 0)
    finally:
        process_flows.app.close()
    assert held(app) == 0
    assert ran == []
    # Their wait was no attempt, and no timeout.
    assert [find(app.ledger, id_).attempt for id_ in ids] == [0] * 10
    assert row(app, "hourly").reserved == 1


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_record_that_was_lost_while_it_waited_does_not_start(app, asynchronous):
    ran = []

    def handle(record):
        ran.append(record.key)

    async def ahandle(record):
        ran.append(record.key)

    limit = app.limit("api", concurrency=1)
    app.flow("limited", limit=limit, concurrency=1)(ahandle if asynchronous else handle)
    permit = limit.acquire()
    app.enqueue("limited", ["a", "b"], key=lambda p: p)
    with app.worker() as worker:
        eventually(lambda: row(app).waiting == 1)
        first = worker.instance.id
        worker.instance.forfeit("by a test")
        worker.instance.beat()
        assert worker.instance.id != first
        eventually(lambda: held(app) == 1 and row(app).waiting == 1, "claimed by the next incarnation")
        permit.release()
        eventually(lambda: len(ran) == 2)
    assert sorted(ran) == ["a", "b"]


def test_a_record_that_was_cancelled_while_it_waited_does_not_start(app, monkeypatch):
    monkeypatch.setattr("rowlock.queue.gate._LONG_SECONDS", 0.0)
    ran = []
    limit = app.limit("api", concurrency=1)

    @app.flow("limited", limit=limit, concurrency=1)
    def handle(record):
        ran.append(record.key)

    permit = limit.acquire()
    ids = app.enqueue("limited", ["a", "b"], key=lambda p: p).ids
    with app.worker() as worker:
        eventually(lambda: row(app).waiting == 1)
        app.ledger.cancel([ids[0]], "not wanted")
        permit.release()
        eventually(lambda: ran)
    assert ran == ["b"]
    assert worker.instance.counters.stale_refused == 1


def test_a_handler_that_asks_for_its_own_flows_limit_is_told(app):
    limit = app.limit("api", concurrency=2)

    @app.flow("limited", limit=limit, max_attempts=1)
    def handle(record):
        with limit:
            pass

    [id_] = app.enqueue("limited", [1]).ids
    drain(app)
    assert Refused.__name__ in find(app.ledger, id_).reason


def test_why_says_that_a_record_waits_for_the_limit(app):
    limit = app.limit("sec.gov", rate="1/h", concurrency=1)

    @app.flow("limited", limit=limit)
    def handle(record):
        """Nothing."""

    [first] = app.enqueue("limited", [1]).ids
    with limit, app.worker():
        eventually(lambda: row(app, "sec.gov").waiting == 1)
        found = explain(app.ledger, first)
        assert [reason["gate"] for reason in found["reasons"]] == ["held", "limit"]
        text = found["reasons"][1]["text"]
        assert "starts only within the limit sec.gov: 1/h, the next free moment is 60 min away" in text
        assert "1 of 1 slots are in use, 1 wait" in text


def test_the_waiting_goes_on_when_the_ledger_is_away(app, monkeypatch):
    limit = app.limit("api", rate="1000/s")
    app.flow("limited", limit=limit)(lambda record: None)
    app.enqueue("limited", [1])
    asked = []
    reserve = type(app.ledger.limits).reserve

    def away_at_first(self, *arguments):
        from rowlock import LedgerUnavailable

        asked.append(1)
        if len(asked) == 1:
            raise LedgerUnavailable("away")
        return reserve(self, *arguments)

    monkeypatch.setattr(type(app.ledger.limits), "reserve", away_at_first)
    assert drain(app).completed == 1
    assert len(asked) == 2


def test_bad_limits_and_breakers_are_named(app):
    for wrong in ("10/s", 10):
        with pytest.raises(ConfigurationError, match="limit is what app"):
            app.flow("f", limit=wrong)(lambda record: None)
    with pytest.raises(ConfigurationError, match="breaker is a Breaker"):
        app.flow("f", breaker=0.5)(lambda record: None)


class TakenAway(Gate):
    """Somebody takes the turn away just as its limit is free; the halt comes a moment later."""

    def decide(self) -> bool:
        first = super().decide()
        if not first:
            self._halt.set()
        return first


def test_a_turn_that_was_taken_away_in_the_moment_its_limit_was_free_does_not_start(app):
    limit, gate = app.limit("api", concurrency=1), TakenAway()
    assert gate.decide()  # whoever takes it away was first
    assert gate.wait(limit) is None
    assert row(app).in_use == 0, "and its slot is free again"


def test_a_halt_ends_a_wait_for_a_slot_at_once(app):
    limit, halt, found = app.limit("api", concurrency=1), Halt(), []
    with limit:
        thread = threading.Thread(target=lambda: found.append(limit.wait_for(halt)))
        thread.start()
        eventually(lambda: row(app).waiting == 1)
        halt.set()
        thread.join(10)
    assert found == [None]
    assert row(app).waiting == 0
