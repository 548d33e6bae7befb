"""Breakers: a flow that fails pauses itself, tries a few records, and goes on or waits for longer."""

from __future__ import annotations

import threading
import time

import pytest

from rowlock import Backoff, Breaker, ConfigurationError, Reject, RetryLater
from rowlock.ledger.breaker_table import Count
from rowlock.ledger.ledger_clock import LedgerClock
from rowlock.queue import breakers
from rowlock.queue.why import explain
from tests.support.ledgers import add_flow, claim, put, register, sql
from tests.support.waiting import eventually

LATER = Backoff(base=3600, cap=3600)
BREAKER = Breaker(failures=0.5, of=10, window=60, pause=30, longest_pause=100, probes=3)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(breakers, "_EVERY_SECONDS", 0.02)


@pytest.fixture
def app(make_app):
    """Its instances outlive the moves of the clock."""
    return make_app(lease_seconds=3600, poll_seconds=0.05)


@pytest.fixture
def clock(app):
    with LedgerClock(app.ledger) as moved:
        yield moved


@pytest.fixture
def site(app):
    """A flow whose handler fails while the site is down."""

    class Site:
        down = True
        calls = 0

    @app.flow("fetch", breaker=BREAKER, backoff=LATER, max_attempts=50, concurrency=2)
    def fetch(record):
        Site.calls += 1
        time.sleep(0.005)  # a site takes its time to fail, so that some records are left to try
        match record.payload:
            case "bad":
                raise Reject("not a page")
            case "later":
                raise RetryLater(3600)
        if Site.down:
            raise ConnectionError(f"no answer for {record.payload}")

    return Site


def flow(app, name="fetch"):
    return next(row for row in app.ledger.run("flows") if row.flow_name == name)


def paused(app):
    return flow(app).state == "paused"


def test_a_flow_that_fails_too_often_pauses_itself_and_says_why(app, site):
    ids = app.enqueue("fetch", [f"page {n}" for n in range(1000)]).ids
    with app.worker():
        eventually(lambda: paused(app))
        row = flow(app)
        eventually(lambda: flow(app).processing == 0, "everything handed back")
        assert site.calls < 1000
        assert row.breaker == "open"
        assert 0 < row.probe_seconds <= 30
        assert "attempts failed within 60 s" in row.reason
        assert "times ConnectionError: no answer for page" in row.reason
        [gate, _queue] = explain(app.ledger, ids[-1])["reasons"]
        assert gate["gate"] == "flow paused"
        assert gate["breaker"] == "open"
        assert "A few records are tried in " in gate["text"]
        assert "To go on now: `rowlock flows resume fetch`" in gate["text"]


def test_after_the_pause_a_few_are_tried_and_a_good_try_closes_it(app, site, clock):
    app.enqueue("fetch", range(1000))
    with app.worker():
        eventually(lambda: paused(app) and flow(app).processing == 0)
        before, site.down = site.calls, False
        assert flow(app).ready > 0
        clock.advance(31)
        eventually(lambda: not paused(app))
        assert site.calls >= before + 3
        assert (flow(app).breaker, flow(app).reason) == (None, None)
        eventually(lambda: flow(app).ready == 0, "the rest is worked off")


def test_a_try_that_fails_waits_for_longer_and_no_more_than_the_longest(app, site, clock):
    app.enqueue("fetch", range(1000))
    with app.worker() as _one, app.worker() as _two:
        eventually(lambda: paused(app) and flow(app).processing == 0)
        for trips, pause in ((2, 60), (3, 100), (4, 100)):
            before = site.calls
            clock.advance(101)
            eventually(lambda t=trips: _breaker(app) == ("open", t))
            assert site.calls == before + 3  # in the whole fleet
            assert pause - 10 < flow(app).probe_seconds <= pause
            assert paused(app)
            assert "3 of 3 attempts of its probe failed, the last with ConnectionError" in flow(app).reason


def _breaker(app):
    rows = sql(app.ledger, "SELECT state, trips FROM {s}flow_breakers")
    return tuple(rows[0]) if rows else None


def test_it_survives_the_instance_that_tripped_it_and_another_probes(app, site, clock, make_app):
    app.enqueue("fetch", range(1000))
    with app.worker():
        eventually(lambda: paused(app) and flow(app).processing == 0)
    site.down = False
    other = make_app(on=app)
    other.flows.update(app.flows)
    with other.worker():
        assert paused(app)
        clock.advance(31)
        eventually(lambda: not paused(app))


def test_a_prober_that_dies_is_replaced(app, clock):
    add_flow(app.ledger, "fetch")
    put(app.ledger, *"abcdefgh", flow="fetch")
    table = app.ledger.breakers
    assert table.trip("fetch", 30, "breaker: it fails")
    first, second = register(app.ledger, lease=60), register(app.ledger, lease=600)
    assert not table.probe("fetch", first)  # its pause is not over
    clock.advance(31)
    assert table.probe("fetch", first)
    assert table.probe("fetch", first)  # the reply may have been lost
    assert not table.probe("fetch", second)
    assert claim(app.ledger, second, 2, flow="fetch") == []
    assert len(claim(app.ledger, first, 2, flow="fetch")) == 2
    clock.advance(61)
    assert table.probe("fetch", second)
    assert not table.resume("fetch", first)
    assert table.longer("fetch", first, 600, "late") is None
    assert len(claim(app.ledger, second, 2, flow="fetch")) == 2
    assert table.longer("fetch", second, 600, "breaker: still") == (60.0, 2)
    assert claim(app.ledger, second, 2, flow="fetch") == []


@pytest.mark.parametrize(("word", "state"), [("paused", "paused"), ("draining", "draining")])
def test_what_a_person_said_about_the_flow_is_never_overruled(app, site, clock, word, state):
    table = app.ledger.breakers
    add_flow(app.ledger, "fetch")
    app.ledger.set_flow_state("fetch", word, "by hand")
    assert not table.trip("fetch", 30, "breaker: it fails")
    assert (flow(app).state, flow(app).reason) == (state, "by hand")
    # Said while the breaker was open: it is closed, and resumes nothing.
    app.ledger.set_flow_state("fetch", "active", None)
    assert table.trip("fetch", 30, "breaker: it fails")
    app.ledger.set_flow_state("fetch", word, "by hand")
    clock.advance(31)
    instance = register(app.ledger)
    assert not table.probe("fetch", instance)
    assert not table.resume("fetch", instance)
    assert not table.resume("fetch", None)
    assert (flow(app).state, flow(app).reason, flow(app).breaker) == (state, "by hand", None)


def test_a_persons_resume_closes_it(app, site):
    app.enqueue("fetch", range(1000))
    with app.worker():
        eventually(lambda: paused(app) and flow(app).processing == 0)
        site.down = False
        app.ledger.set_flow_state("fetch", "active", None)
        assert flow(app).breaker is None
        eventually(lambda: flow(app).ready == 0)
        assert not paused(app)


def test_what_has_not_started_when_it_opens_is_handed_back(app):
    started, go_on = threading.Event(), threading.Event()
    limit = app.limit("site", concurrency=1)

    @app.flow("fetch", breaker=BREAKER, limit=limit, concurrency=4)
    def fetch(record):
        started.set()
        go_on.wait(60)

    app.enqueue("fetch", range(10))
    with app.worker():
        assert started.wait(30)
        eventually(lambda: flow(app).processing == 4)
        assert app.ledger.breakers.trip("fetch", 30, "breaker: it fails")
        eventually(lambda: flow(app).processing == 1, "the one that runs")
        assert flow(app).ready == 9
        go_on.set()


def test_rejected_and_postponed_records_are_no_failures_of_the_flow(app, site):
    app.enqueue("fetch", ["bad", "later"] * 30, key=None)
    counted = {}
    with app.worker():
        eventually(lambda: site.calls == 60)
        eventually(lambda: flow(app).ready == flow(app).processing == 0)
        counted = sql(app.ledger, "SELECT count(*) FROM {s}flow_outcomes")
        assert not paused(app)
    assert counted[0][0] == 0


def test_a_few_failures_are_no_ground_for_anything(app, site):
    app.enqueue("fetch", range(9))
    with app.worker():
        eventually(lambda: _attempts(app) == 9)
        assert not paused(app)


def _attempts(app):
    return sql(app.ledger, "SELECT coalesce(sum(attempts), 0) FROM {s}flow_outcomes")[0][0]


def test_outcomes_of_many_workers_count_together_and_old_ones_leave_the_window(app, clock):
    add_flow(app.ledger, "fetch")
    table = app.ledger.breakers
    for _worker in range(3):
        table.add("fetch", 60, [Count("", None, 2), Count("E-1", "E: one", 3), Count("F-2", "F: two", 1)])
    row = table.look("fetch", 60)
    assert (row.attempts, row.failures, row.example, row.most) == (18, 12, "E: one", 9)
    clock.advance(61)
    table.add("fetch", 60, [Count("", None, 1)])
    row = table.look("fetch", 60)
    assert (row.attempts, row.failures, row.example) == (1, 0, None)
    clock.advance(121)
    table.add("fetch", 60, [Count("", None, 1)])
    assert _attempts(app) == 1


def test_nothing_counts_while_it_is_open(app):
    add_flow(app.ledger, "fetch")
    table = app.ledger.breakers
    table.add("fetch", 60, [Count("E-1", "E: one", 30)])
    assert table.trip("fetch", 30, "breaker: it fails")
    assert not table.trip("fetch", 30, "breaker: again")
    table.add("fetch", 60, [Count("E-1", "E: one", 30)])
    assert _attempts(app) == 0


def test_a_program_without_the_breaker_lets_the_flow_go_on(app, make_app):
    add_flow(app.ledger, "fetch")
    assert app.ledger.breakers.trip("fetch", 3600, "breaker: it fails")
    other = make_app(on=app)
    other.flow("fetch")(lambda record: None)
    with other.worker():
        assert not paused(app)


def test_one_record_is_enough_for_a_probe_when_there_are_no_more(app, site, clock):
    app.enqueue("fetch", range(10))
    with app.worker():
        eventually(lambda: paused(app) and flow(app).processing == 0)
        site.down = False
        clock.advance(31)
        eventually(lambda: (_breaker(app) or ("", 0))[0] == "probing")
        app.enqueue("fetch", ["one"])
        eventually(lambda: not paused(app))


@pytest.mark.parametrize(
    "wrong",
    [
        {"failures": 0}, {"failures": 1.1}, {"of": 0}, {"window": 0}, {"pause": 0}, {"probes": 0},
        {"pause": 60, "longest_pause": 30},
    ],
)  # fmt: skip
def test_bad_numbers_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="Breaker: "):
        Breaker(**wrong)
