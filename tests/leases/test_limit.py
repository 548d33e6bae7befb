"""Limits: a budget that a fleet shares, whoever dies, whoever waits."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest
from bench.limits import excess, run

from rowlock import InvalidInput, LeaseLost, LimitReached, Refused
from rowlock.leases import moments
from rowlock.leases.limit import Halt
from rowlock.leases.rate import interval_of
from rowlock.ledger.ledger_clock import LedgerClock
from tests.support.ledgers import sql
from tests.support.waiting import eventually

HOLD = """
import threading
from rowlock import Rowlock
permit = Rowlock().limit("api", concurrency=2, ttl=2).acquire()
print(permit.lease.token, flush=True)
threading.Event().wait()  # until it is killed
"""


@pytest.fixture
def other(app, make_app):
    """Another program on the same ledger."""
    return make_app(on=app)


def row(app, name="api"):
    return app.ledger.limits.list(name)[0]


def reserve(app, count=1, longest=1000.0):
    return app.ledger.limits.reserve("api", count, longest)


# -- rates ------------------------------------------------------------------------------------------------


def test_four_processes_together_start_no_more_than_the_rate_allows(app):
    rate = 50
    starts = run(app.settings, f"{rate}/s", processes=4, threads=3, seconds=4)
    # The k-th start is no earlier than the k-th moment, from the first one on: at no time were there more.
    first = starts[0].earliest
    for number, start in enumerate(sorted(start.latest for start in starts)):
        assert number <= (start - first) * rate + 1
    # Over any window at all there are no more moments than that; a machine may be late for some of them.
    assert excess([start.due for start in starts], rate) <= 0
    assert len(starts) > rate * 4 * 0.5
    assert row(app, "bench").reserved >= len(starts)


@pytest.fixture
def clock(app):
    with LedgerClock(app.ledger) as moved:
        yield moved


def test_moments_are_evenly_spaced_by_the_ledgers_clock(app, clock):
    with app.limit("api", rate="2/m"):
        assert row(app).rate == "2/m"
    waits = [reserve(app).wait for _ in range(3)]
    assert [round(wait / 30) for wait in waits] == [1, 2, 3]
    clock.advance(3600)
    assert [round(reserve(app).wait / 30) for _ in range(3)] == [0, 1, 2]


def test_a_burst_may_start_at_once_after_an_idle_time(app, clock):
    with app.limit("api", rate="2/m", burst=3):
        pass
    clock.advance(3600)
    waits = [reserve(app).wait for _ in range(5)]
    assert [wait <= 0 for wait in waits] == [True, True, True, False, False]
    assert [round(wait / 30) for wait in waits[3:]] == [1, 2]


def test_several_moments_are_reserved_in_one_statement_and_none_beyond_the_longest_wait(app):
    with app.limit("api", rate="1/m"):
        pass
    before = row(app).reserved
    assert reserve(app, count=5, longest=150).got == 2
    assert reserve(app, count=5, longest=150).got == 0
    assert row(app).reserved == before + 2


def test_a_wait_that_cannot_be_met_is_refused_at_once_and_spends_nothing(app, other):
    with app.limit("api", rate="1/h"):
        pass
    before = row(app)
    with pytest.raises(LimitReached, match=r"'api': the next free moment is 60 min away.*Nothing was spent"):
        other.limit("api", rate="1/h", wait=5).acquire()
    with pytest.raises(LimitReached), other.limit("api", rate="1/h", wait=0):
        pass
    assert row(app).reserved == before.reserved == 1
    assert row(app).wait_seconds <= before.wait_seconds


def test_nobody_reserves_far_ahead_so_that_a_death_costs_little(app):
    limit, halt = app.limit("api", rate="1/h"), Halt()
    limit.acquire()
    threads = [threading.Thread(target=limit.wait_for, args=(halt,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    eventually(lambda: row(app).asked_seconds < 1 and row(app).reserved == 1)
    halt.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert row(app).reserved == 1


def test_a_moment_that_was_slept_through_is_given_up(app, monkeypatch):
    """A process that was stopped does not start at once all that it had reserved."""
    line = moments.Moments("api")
    with app.limit("api", rate="1000/s"):
        pass
    moment = moments.Moment(line, app.locks.keeper.ledger, float("inf"))
    assert moment.pause() == 0
    moment.ask()
    asleep = moments.clock.monotonic() + 10
    monkeypatch.setattr(moments.clock, "monotonic", lambda: asleep)
    assert moment.pause() == 0
    assert row(app).reserved == 2
    moment.ask()
    assert row(app).reserved == 3


def test_different_declarations_the_last_one_counts_for_everybody(app, other, caplog):
    first = app.limit("api", rate="1000/s", concurrency=2)
    with first:
        pass
    assert not caplog.records
    with other.limit("api", rate="500/s", concurrency=1):
        assert (row(app).rate, row(app).concurrency) == ("500/s", 1)
        assert "declared as 1000/s, 2 at once, and is 500/s, 1 at once" in caplog.text
        first._fresh_until = 0.0
        with pytest.raises(LimitReached):
            first.wait_for(Halt(), 0)
    with first:
        assert row(app).rate == "500/s"


# -- concurrency ---------------------------------------------------------------------------------------------


def test_so_many_at_once_and_not_one_more(app, make_app):
    apps = [app, make_app(on=app)]
    now, most, lock = 0, 0, threading.Lock()

    def use(limit) -> None:
        nonlocal now, most
        for _ in range(5):
            with limit:
                with lock:
                    now += 1
                    most = max(most, now)
                with lock:
                    now -= 1

    limits = [one.limit("api", concurrency=3) for one in apps]
    threads = [threading.Thread(target=use, args=(limits[n % 2],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= most <= 3
    assert row(app).in_use == 0


def test_a_wait_that_is_over_says_who_holds_the_slots(app, other):
    with app.limit("api", concurrency=1) as permit:
        permit.check()
        assert permit.lease.held
        with pytest.raises(LimitReached, match=r"'api': no slot is free.*held by instance \d+.*waited 0.1 s"):
            other.limit("api", concurrency=1, wait=0.1).acquire()
    assert not permit.lease.held
    with pytest.raises(LeaseLost):
        permit.check()


def test_no_slot_means_that_no_moment_is_spent(app, other):
    with app.limit("api", rate="1000/s", concurrency=1):
        before = row(app).reserved
        with pytest.raises(LimitReached, match="no slot is free"):
            other.limit("api", rate="1000/s", concurrency=1, wait=0).acquire()
        assert row(app).reserved == before


def test_waiters_are_served_in_order_of_arrival(app, make_app):
    order, threads = [], []

    def wait_for_it(limit, number) -> None:
        with limit:
            order.append(number)

    with app.limit("api", concurrency=1):
        for number in range(5):
            program = make_app(on=app) if number % 2 else app
            limit = program.limit("api", concurrency=1)
            thread = threading.Thread(target=wait_for_it, args=(limit, number))
            thread.start()
            threads.append(thread)
            eventually(lambda n=number: row(app).waiting == n + 1, "the next waiter")
    for thread in threads:
        thread.join()
    assert order == list(range(5))


def test_a_killed_holders_slot_is_back_within_one_ttl(app):
    environment = os.environ | {
        "ROWLOCK_LEDGER_URL": app.settings.ledger_url,
        "ROWLOCK_LEDGER_SCHEMA": app.settings.ledger_schema,
    }
    command = [sys.executable, "-c", HOLD]
    holders = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for holder in holders:
            holder.stdout.readline()
        limit = app.limit("api", concurrency=2, ttl=2)
        with pytest.raises(LimitReached):
            limit.wait_for(Halt(), 0)
        victim = holders[0]
        victim.send_signal(signal.SIGKILL)
        victim.wait(10)
        killed = app.ledger.now()
        with limit:
            [(acquired,)] = sql(
                app.ledger,
                "SELECT max(acquired_at) FROM {s}service_locks WHERE lock_name = 'limit:api'"
                if app.ledger.dialect == "sqlite"
                else "SELECT extract(epoch FROM max(acquired_at))::float8 FROM {s}service_locks WHERE lock_name = 'limit:api'",
            )
            assert row(app).in_use == 2
        # The ledger frees it when its last renewal is one ttl old; we were next in line, and woke for that.
        [(ended,)] = sql(
            app.ledger,
            "SELECT max(ended_at) FROM {s}lock_holdings WHERE ended = 'expired'"
            if app.ledger.dialect == "sqlite"
            else "SELECT extract(epoch FROM max(ended_at))::float8 FROM {s}lock_holdings WHERE ended = 'expired'",
        )
        assert ended <= killed + 2
        assert acquired >= ended
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def test_the_same_task_may_not_take_a_slot_twice(app):
    limit = app.limit("api", concurrency=2)
    with limit, pytest.raises(Refused, match="already holds 'limit:api'"):
        limit.acquire()
    with app.limit("api-rate", rate="1000/s") as outer, app.limit("api-rate", rate="1000/s") as inner:
        assert outer.lease is inner.lease is None


def test_leaving_what_was_not_entered_is_refused(app):
    with pytest.raises(Refused, match="has not entered"):
        app.limit("api", rate="1/s").__exit__(None, None, None)


# -- one object, many users --------------------------------------------------------------------------------------


def test_one_object_serves_threads_and_tasks_at_once(app):
    limit = app.limit("api", rate="1000/s", concurrency=50)
    everybody = threading.Barrier(6)

    def in_a_thread() -> None:
        with limit as permit:
            everybody.wait(20)
            assert permit.lease.held

    async def in_tasks() -> None:
        meeting = asyncio.Barrier(6)

        async def one() -> None:
            async with limit as permit:
                await meeting.wait()
                assert permit.lease.held

        await asyncio.gather(*(one() for _ in range(6)))

    threads = [threading.Thread(target=in_a_thread) for _ in range(6)]
    for thread in threads:
        thread.start()
    asyncio.run(in_tasks())
    for thread in threads:
        thread.join()
    assert row(app).reserved >= 12  # one that was missed is reserved again
    assert row(app).in_use == 0


def test_a_task_that_waits_does_not_stop_its_loop_and_can_be_cancelled(app):
    limit = app.limit("api", rate="1/h", concurrency=1)

    async def main() -> None:
        async with limit:
            pass
        waiting = asyncio.create_task(limit.aacquire())
        await asyncio.to_thread(eventually, lambda: row(app).in_use == 1)  # and the loop goes on
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert row(app).in_use == 0
        assert row(app).reserved == 1

    asyncio.run(main())


def test_a_task_whose_slot_is_lost_is_cancelled(app):
    limit = app.limit("api", concurrency=1)

    async def main() -> None:
        with pytest.raises(LeaseLost):
            async with limit as permit:
                app.ledger.locks.force("limit:api", 0, "by a test")
                permit.lease.lose("by a test")
                await asyncio.sleep(3600)

    asyncio.run(main())


def test_an_error_inside_gives_the_slot_back(app):
    with pytest.raises(ZeroDivisionError), app.limit("api", concurrency=1):
        raise ZeroDivisionError
    assert row(app).in_use == 0


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "limits nothing"),
        ({"rate": "fast"}, "rate='fast' cannot be read.*'10/s'"),
        ({"rate": "0/s"}, "cannot be read"),
        ({"rate": "-1/s"}, "cannot be read"),
        ({"rate": "1.5/s"}, "cannot be read"),
        ({"rate": "10/week"}, "cannot be read"),
        ({"rate": 10}, "cannot be read"),
        ({"rate": "20000/s"}, "more than 10,000 a second"),
        ({"concurrency": 0}, "outside 1 … 1000"),
        ({"concurrency": 1001}, "outside 1 … 1000"),
        ({"concurrency": True}, "outside 1 … 1000"),
        ({"rate": "1/s", "burst": 0}, "burst=0 is outside"),
        ({"concurrency": 1, "burst": 5}, "says nothing without a rate"),
        ({"rate": "1/s", "wait": -1}, "wait=-1 s cannot be"),
        ({"concurrency": 1, "ttl": 0.5}, "ttl=0.5 s is outside"),
    ],
)
def test_bad_input_is_refused_when_it_is_declared(app, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        app.limit("api", **arguments)


def test_bad_names_are_refused(app):
    for name in ("", "  ", "a\nb", "x" * 241, None):
        with pytest.raises(InvalidInput):
            app.limit(name, rate="1/s")


def test_rates_are_read_and_never_rounded_up():
    assert [interval_of("x", rate) for rate in ("10/s", " 600 / m ", "5000/h", "1/d")] == [
        0.1, 0.1, 0.72, 86400,
    ]  # fmt: skip
    assert interval_of("x", "3/s") * 3 >= 1
