"""Workers: records in, effects out, whatever handlers do."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from rowlock import (
    Backoff,
    ConfigurationError,
    LeaseLost,
    LedgerUnavailable,
    Record,
    Reject,
    RetryLater,
    UnknownFlow,
)
from rowlock.queue.why import explain
from tests.support.ledgers import find, sql
from tests.support.waiting import eventually

QUICK = Backoff(base=0.01, cap=0.05)


def drain(app, **options):
    """Runs a worker until nothing is left."""
    worker = app.worker(until_empty=True, **options)
    worker.start()
    assert worker.join(30)
    return worker.instance.counters


def statuses(app):
    rows = sql(app.ledger, "SELECT status, count(*) FROM {s}processing_history GROUP BY status")
    return dict(rows)


# -- handlers of every kind ----------------------------------------------------------------------------------


def test_a_sync_handler(app):
    @app.flow("double")
    def double(record: Record):
        return {"n": record.payload["n"] * 2}

    ids = app.enqueue("double", [{"n": n} for n in range(50)]).ids
    assert drain(app).completed == 50
    assert find(app.ledger, ids[7]).result.replace(" ", "") == '{"n":14}'
    assert double.flow.name == "double"


def test_an_async_handler(app):
    @app.flow("wait", concurrency=50)
    async def wait(record):
        await asyncio.sleep(0.01)

    app.enqueue("wait", [{"n": n} for n in range(200)])
    assert drain(app).completed == 200


def test_async_handlers_run_side_by_side(app):
    everybody = None

    @app.flow("meet", concurrency=10)
    async def meet(record):
        nonlocal everybody
        everybody = everybody or asyncio.Barrier(10)
        await everybody.wait()

    app.enqueue("meet", [{"n": n} for n in range(10)])
    assert drain(app).completed == 10


def test_sync_handlers_run_side_by_side_up_to_the_concurrency(app):
    meeting = threading.Barrier(4)
    most, running, lock = 0, 0, threading.Lock()

    @app.flow("meet", concurrency=4)
    def meet(record):
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait(10)
        with lock:
            running -= 1

    app.enqueue("meet", [{"n": n} for n in range(16)])
    assert drain(app).completed == 16
    assert most == 4


def test_a_workers_own_concurrency_overrides_the_flows(app):
    running, most, lock = 0, 0, threading.Lock()

    @app.flow("one", concurrency=8)
    def one(record):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    app.enqueue("one", range(10))
    drain(app, concurrency=1)
    assert most == 1


# -- how a record goes on ------------------------------------------------------------------------------------


def test_a_record_that_always_fails_is_dead_after_its_attempts_with_every_error_kept(app):
    seen = []

    @app.flow("bad", max_attempts=3, backoff=QUICK)
    def bad(record):
        seen.append((record.attempt, record.token))
        raise ValueError(f"bad row {record.payload}")

    [record_id] = app.enqueue("bad", [7]).ids
    assert drain(app).failed == 3
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    assert sorted(token for _, token in seen) == [token for _, token in seen]
    row = find(app.ledger, record_id)
    assert (row.status, row.reason) == ("dead", "failed 3 times; at last ValueError: bad row 7")
    attempts = app.ledger.run("attempts", id=record_id)
    assert [a.error_type for a in attempts] == ["ValueError"] * 3
    assert all("in bad\n" in a.traceback for a in attempts)
    assert len({a.fingerprint for a in attempts}) == 1


def test_a_record_that_recovers_completes(app):
    @app.flow("flaky", backoff=QUICK)
    def flaky(record):
        if record.attempt < 3:
            raise ConnectionError("not yet")
        return "at last"

    app.enqueue("flaky", [1])
    drain(app)
    assert statuses(app) == {"completed": 1}


def test_reject_is_dead_now(app):
    @app.flow("strict", max_attempts=10)
    def strict(record):
        raise Reject("no such survey")

    [record_id] = app.enqueue("strict", [1]).ids
    drain(app)
    row = find(app.ledger, record_id)
    assert (row.status, row.attempt, row.reason) == ("dead", 1, "Reject: no such survey")


def test_retry_later_spends_no_attempt(app):
    times = []

    @app.flow("patient", max_attempts=1)
    def patient(record):
        times.append(record.attempt)
        if len(times) < 4:
            raise RetryLater(0.01)

    app.enqueue("patient", [1])
    drain(app)
    assert times == [1, 1, 1, 1]
    assert statuses(app) == {"completed": 1}


def test_the_reason_for_a_delay_is_kept(app):
    @app.flow("patient")
    def patient(record):
        raise RetryLater(3600, "the site is down for the night")

    [record_id] = app.enqueue("patient", [1]).ids
    with app.worker():
        eventually(lambda: find(app.ledger, record_id).status == "retry_wait")
    [attempt] = app.ledger.run("attempts", id=record_id)
    assert (attempt.outcome, attempt.message) == ("postponed", "the site is down for the night")
    assert "the site is down for the night" in explain(app.ledger, record_id)["reasons"][0]["text"]


def test_a_result_that_is_not_json_fails_the_attempt_and_says_so(app):
    @app.flow("odd", max_attempts=1)
    def odd(record):
        return {"when": datetime.now(UTC)}

    [record_id] = app.enqueue("odd", [1]).ids
    drain(app)
    row = find(app.ledger, record_id)
    assert row.status == "dead"
    assert "cannot be written as JSON" in row.reason


def test_sys_exit_in_a_handler_is_a_failure_not_the_end_of_the_worker(app):
    @app.flow("quitter", max_attempts=1)
    def quitter(record):
        raise SystemExit(3)

    app.enqueue("quitter", [1, 2])
    drain(app)
    assert statuses(app) == {"dead": 2}


def test_errors_that_no_database_likes_are_kept(app):
    @app.flow("nul", max_attempts=1)
    def nul(record):
        raise ValueError("a \x00 b \ud800 c")

    [record_id] = app.enqueue("nul", [1]).ids
    drain(app)
    assert "a \\x00 b ? c" in find(app.ledger, record_id).reason


def test_run_at_in_the_future_waits_and_then_runs(app):
    @app.flow("later")
    def later(record):
        return None

    due = datetime.now(UTC) + timedelta(seconds=0.3)
    [record_id] = app.enqueue("later", [1], run_at=due).ids
    drain(app)
    claimed = find(app.ledger, record_id).claimed_at
    moment = claimed if isinstance(claimed, datetime) else datetime.fromtimestamp(claimed, UTC)
    assert moment >= due


def test_high_priority_overtakes(app):
    order = []

    @app.flow("ordered", concurrency=1)
    def ordered(record):
        order.append(record.payload)

    app.enqueue("ordered", ["low 1", "low 2"])
    app.enqueue("ordered", ["high"], priority=10)
    drain(app)
    assert order[0] == "high"


def test_one_flow_does_not_starve_another(app):
    release, quick_done = threading.Event(), threading.Event()

    @app.flow("slow", concurrency=2)
    def slow(record):
        release.wait(20)

    @app.flow("quick")
    def quick(record):
        quick_done.set()

    app.enqueue("slow", range(500), priority=100)
    app.enqueue("quick", [1])
    with app.worker():
        assert quick_done.wait(20)
        app.ledger.set_flow_state("slow", "paused", "test")
        release.set()


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_an_outcome_that_the_ledger_refused_is_counted_and_told(app, caplog, how):
    started, release = threading.Event(), threading.Event()

    @app.flow("slow")
    def slow(record):
        started.set()
        release.wait(20)
        if how == "raises":
            raise ValueError("too late as well")

    [record_id] = app.enqueue("slow", [1]).ids
    with app.worker() as worker:
        assert started.wait(20)
        app.ledger.cancel([record_id], "changed my mind")
        release.set()
        eventually(lambda: worker.instance.counters.stale_refused == 1, "the refusal")
    assert (worker.instance.counters.completed, worker.instance.counters.failed) == (0, 0)
    assert f"record {record_id}: the token 1 is stale" in caplog.text
    assert find(app.ledger, record_id).status == "cancelled"


# -- batches ---------------------------------------------------------------------------------------------------


def test_a_batch_handler_gets_lists(app):
    sizes = []

    @app.flow("batch", batch=10, concurrency=1)
    def batch(records):
        sizes.append(len(records))
        return [{"n": record.payload} for record in records]

    ids = app.enqueue("batch", range(25)).ids
    assert drain(app).completed == 25
    assert max(sizes) <= 10
    assert sum(sizes) == 25
    assert find(app.ledger, ids[3]).result.replace(" ", "") == '{"n":3}'


def test_a_batch_handler_settles_records_one_by_one(app):
    @app.flow("mixed", batch=10, max_attempts=1)
    def mixed(records):
        for record in records:
            match record.payload:
                case 0:
                    record.complete({"by": "hand"})
                case 1:
                    record.fail(ValueError("bad one"))
                case 2:
                    record.reject("never")

    app.enqueue("mixed", range(5))
    drain(app)
    assert statuses(app) == {"completed": 3, "dead": 2}


def test_a_batch_that_raises_fails_only_what_was_not_settled(app):
    @app.flow("half", batch=10, max_attempts=1)
    def half(records):
        records[0].complete()
        raise RuntimeError("half way")

    app.enqueue("half", range(4))
    drain(app)
    assert statuses(app) == {"completed": 1, "dead": 3}


def test_an_async_batch_that_returns_nonsense_fails(app):
    @app.flow("odd", batch=4, max_attempts=1)
    async def odd(records):
        return "done"

    app.enqueue("odd", range(4))
    drain(app)
    assert statuses(app) == {"dead": 4}


# -- timeouts ----------------------------------------------------------------------------------------------------


def test_a_timeout_cancels_an_async_handler(app):
    cancelled = threading.Event()

    @app.flow("endless", timeout=0.2, max_attempts=1)
    async def endless(record):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    [record_id] = app.enqueue("endless", [1]).ids
    drain(app)
    assert cancelled.is_set()
    assert "more than 0.2 s" in find(app.ledger, record_id).reason


def test_an_async_slot_works_on_after_a_timeout(app):
    @app.flow("some", timeout=0.2, max_attempts=1, concurrency=1)
    async def some(record):
        if record.payload == 0:
            await asyncio.sleep(3600)

    app.enqueue("some", range(5))
    drain(app)
    assert statuses(app) == {"completed": 4, "dead": 1}


def test_a_timeout_refuses_a_threads_late_result(app):
    release, late = threading.Event(), threading.Event()
    refused = []

    @app.flow("stuck", timeout=0.2, max_attempts=1, concurrency=1)
    def stuck(record):
        if record.payload == 0:
            release.wait(20)
            try:
                with record.transaction():
                    pass
            except LeaseLost as error:
                refused.append(error)
            late.set()

    ids = app.enqueue("stuck", range(3)).ids
    counters = drain(app)
    assert counters.completed == 2
    assert find(app.ledger, ids[0]).status == "dead"
    release.set()
    assert late.wait(20)
    assert refused
    assert find(app.ledger, ids[0]).status == "dead"


def test_a_late_thread_does_not_disturb_the_next_attempt_in_the_same_worker(app):
    """The same record is here again under a newer token when the old thread ends."""
    first_may_end, second_runs = threading.Event(), threading.Event()
    late = threading.Event()

    @app.flow("slow", timeout=0.3, max_attempts=5, backoff=Backoff(0, 0), concurrency=2)
    def slow(record):
        if record.attempt == 1:
            first_may_end.wait(20)
            late.set()
            return
        second_runs.set()
        first_may_end.set()
        assert late.wait(20)
        time.sleep(0.1)  # the late outcome is with the pump by now

    [record_id] = app.enqueue("slow", [1]).ids
    assert drain(app).completed == 1
    row = find(app.ledger, record_id)
    assert (row.status, row.attempt) == ("completed", 2)


# -- life ------------------------------------------------------------------------------------------------------------


def test_enqueue_wakes_an_idle_worker(make_app):
    app = make_app(poll_seconds=3600)
    done = threading.Event()

    @app.flow("wake")
    def wake(record):
        done.set()

    with app.worker():
        eventually(lambda: app.ledger.run("instances", everyone=False, limit=9)[0].state == "active")
        for _ in range(3):
            done.clear()
            app.enqueue("wake", [1])
            assert done.wait(20)


def test_a_burst_of_single_enqueues_is_found_without_polling(make_app):
    app = make_app(poll_seconds=3600)
    seen = []

    @app.flow("burst")
    def burst(record):
        seen.append(record.payload)

    with app.worker():
        for n in range(50):
            app.enqueue("burst", [n])
        eventually(lambda: len(seen) == 50)


def test_a_paused_flow_rests_and_a_resumed_one_goes_on(app):
    done = threading.Event()

    @app.flow("paused")
    def paused(record):
        done.set()

    app.enqueue("paused", [1])
    app.ledger.set_flow_state("paused", "paused", "deploy")
    assert drain(app).completed == 0
    app.ledger.set_flow_state("paused", "active", None)
    assert drain(app).completed == 1


def test_stopping_hands_back_what_has_not_started_unspent(make_app):
    app = make_app(grace_seconds=20)
    started, release = threading.Event(), threading.Event()

    @app.flow("slow", concurrency=1)
    def slow(record):
        started.set()
        release.wait(20)

    ids = app.enqueue("slow", range(5)).ids
    worker = app.worker()
    worker._lanes["slow"]._slots = 5  # as if it had claimed ahead
    worker.start()
    assert started.wait(20)
    worker.stop()
    eventually(
        lambda: sql(app.ledger, "SELECT count(*) FROM {s}processing_queue WHERE holder IS NULL")[0][0] == 4
    )
    release.set()
    assert worker.join(20)
    rows = [find(app.ledger, id_) for id_ in ids]
    assert [row.status for row in rows] == ["completed"] + ["pending"] * 4
    assert [row.attempt for row in rows[1:]] == [0] * 4


def test_when_the_grace_is_over_running_records_are_handed_back_and_their_results_refused(make_app):
    app = make_app(grace_seconds=0)
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    @app.flow("slow")
    def slow(record):
        started.set()
        release.wait(20)
        try:
            with record.transaction():
                pass
        finally:
            ended.set()

    [record_id] = app.enqueue("slow", [1]).ids
    worker = app.worker()
    worker.start()
    assert started.wait(20)
    worker.stop()
    assert worker.join(20)
    row = find(app.ledger, record_id)
    assert (row.status, row.attempt, row.holder) == ("pending", 0, None)
    release.set()
    assert ended.wait(20)
    assert find(app.ledger, record_id).status == "pending"


def test_a_drained_instance_finishes_what_it_has_and_leaves(make_app):
    app = make_app(lease_seconds=0.6)
    started, release = threading.Event(), threading.Event()

    @app.flow("slow", concurrency=1)
    def slow(record):
        started.set()
        release.wait(20)

    ids = app.enqueue("slow", range(2)).ids
    worker = app.worker()
    worker.start()
    assert started.wait(20)
    app.ledger.run("instance_drain", id=worker.instance.id)
    eventually(worker._stopping.is_set, "the drain")
    for _ in range(3):
        worker.instance.beat()
    assert not worker._leave_now.is_set()
    release.set()
    assert worker.join(20)
    assert [find(app.ledger, id_).status for id_ in ids] == ["completed", "pending"]


def test_a_worker_leaves_the_registry(app):
    @app.flow("x")
    def x(record):
        return None

    drain(app)
    [row] = app.ledger.run("instances", everyone=True, limit=10)
    assert (row.state, row.ended_reason) == ("stopped", "stopped")


def test_counters_reach_the_registry(app):
    @app.flow("x", max_attempts=1)
    def x(record):
        if record.payload == 3:
            raise ValueError

    app.enqueue("x", range(10))
    drain(app)
    totals = app.ledger.run("totals")[0]
    assert (totals.completed, totals.failed) == (9, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"concurrency": 0}, "concurrency"),
        ({"timeout": 0}, "timeout"),
        ({"batch": 0}, "batch"),
        ({"executor": "fiber"}, "executor"),
        ({"executor": "async"}, "async def"),
    ],
)
def test_a_flow_that_cannot_work_is_refused(app, options, words):
    with pytest.raises(ConfigurationError, match=words):
        app.flow("bad", **options)(lambda record: None)


def test_two_flows_of_one_name_are_refused(app):
    app.flow("same")(lambda record: None)
    with pytest.raises(ConfigurationError, match="already registered"):
        app.flow("same")(lambda record: None)


def test_a_worker_needs_flows_it_knows(app):
    with pytest.raises(ConfigurationError, match="at least one flow"):
        app.worker()
    app.flow("x")(lambda record: None)
    with pytest.raises(UnknownFlow, match="there are: x"):
        app.worker(["y"])
    with pytest.raises(ConfigurationError, match="at least one slot"):
        app.worker(concurrency=0)


@pytest.mark.parametrize("deaths", [1, 2])
def test_suspects_that_fill_the_lane_all_run(app, deaths):
    """Records whose worker died before start only when announced; a lane full of them must not wait for itself."""

    @app.flow("suspects", concurrency=2)
    def suspects(record):
        with record.transaction():
            pass

    app.enqueue("suspects", range(30))
    sql(app.ledger, f"UPDATE {{s}}processing_queue SET deaths = {deaths}")
    assert drain(app).completed == 30


def test_one_whose_next_death_would_be_its_last_runs_alone(app):
    together, lock, most = [], threading.Lock(), []

    @app.flow("suspects", concurrency=4)
    def suspects(record):
        with lock:
            together.append(record.id)
            most.append((record.deaths, len(together)))
        time.sleep(0.01)
        with lock:
            together.remove(record.id)

    app.enqueue("suspects", range(12))
    sql(app.ledger, "UPDATE {s}processing_queue SET deaths = 2 WHERE id > 6")
    sql(app.ledger, "UPDATE {s}processing_queue SET deaths = 1 WHERE id <= 6")
    assert drain(app).completed == 12
    assert max(count for deaths, count in most if deaths == 2) == 1


def test_suspects_wait_out_an_outage(app, monkeypatch):
    """An announcement that did not get through is made again."""

    @app.flow("suspects", concurrency=2)
    def suspects(record):
        return None

    app.enqueue("suspects", range(6))
    sql(app.ledger, "UPDATE {s}processing_queue SET deaths = 2")
    worker = app.worker(until_empty=True)
    real, calls = worker._control.start, []

    def start(tokens):
        calls.append(tokens)
        if len(calls) in (1, 3):
            raise LedgerUnavailable("cut off")
        return real(tokens)

    monkeypatch.setattr(worker._control, "start", start)
    worker.start()
    assert worker.join(30)
    assert worker.instance.counters.completed == 6
