"""Schedules: one record a tick, no tick twice, and a policy for those that were missed."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from rowlock import ConfigurationError
from rowlock.ledger.ledger_clock import LedgerClock
from rowlock.queue.schedule import Schedule
from rowlock.queue.scheduler import Scheduler
from tests.support.ledgers import sql

NOON = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)


def at(hour: int, minute: int, second: int = 0) -> datetime:
    return NOON.replace(hour=hour, minute=minute, second=second)


@pytest.mark.parametrize(
    ("missed", "last", "expected"),
    [
        # nothing is due
        ("once", at(12, 0), None),
        # in time, even if a little late
        ("skip", at(11, 55), (at(12, 0), True, False)),
        # two hours were missed
        ("skip", at(10, 0), (at(11, 55), False, True)),
        ("once", at(10, 0), (at(11, 55), True, True)),
        ("all", at(10, 0), (at(10, 5), True, True)),
    ],
)
def test_the_policy_says_what_becomes_of_missed_ticks(missed, last, expected):
    schedule = Schedule("s", "*/5 * * * *", "f", missed=missed)
    step = schedule.next_step(last, NOON)
    assert (step and (step.tick, step.fire, step.missed)) == expected


def test_ticks_are_meant_in_their_time_zone_whatever_the_season():
    schedule = Schedule("s", "0 6 * * *", "f", tz="Europe/Prague")
    assert schedule.after(datetime(2026, 1, 10, 12, tzinfo=UTC)) == datetime(2026, 1, 11, 5, tzinfo=UTC)
    assert schedule.after(datetime(2026, 7, 10, 12, tzinfo=UTC)) == datetime(2026, 7, 11, 4, tzinfo=UTC)
    assert schedule.payload_for(datetime(2026, 7, 11, 4, tzinfo=UTC))["tick"] == "2026-07-11T06:00:00+02:00"


def test_the_hour_that_is_left_out_and_the_one_that_comes_twice():
    """In Prague 02:30 does not exist on 29 March 2026, and exists twice on 25 October."""
    schedule = Schedule("s", "30 2 * * *", "f", tz="Europe/Prague")
    spring = schedule.after(datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert spring == datetime(2026, 3, 29, 1, tzinfo=UTC), (
        "at 03:00, which is when 02:30 would have been over"
    )
    first = schedule.after(datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert schedule.after(first) > first + timedelta(hours=20), "once a day, also that day"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cron": "0 6 * *"}, "no cron expression"),
        ({"cron": "0 25 * * *"}, "no cron expression"),
        ({"cron": "0 0 30 2 *"}, "cron expression|never comes"),
        ({"cron": None}, "no cron expression"),
        ({"tz": "Europe/Atlantis"}, "no time zone"),
        ({"missed": "sometimes"}, "skip, once or all"),
        ({"late_after": 0}, "late_after"),
        ({"payload": [1]}, "mapping"),
    ],
)
def test_bad_schedules_are_refused_when_they_are_declared(arguments, words):
    with pytest.raises(ConfigurationError, match=words):
        Schedule(**{"name": "s", "cron": "0 6 * * *", "flow": "f", **arguments})


# -- the scheduler -----------------------------------------------------------------------------------------------


def scheduler(app) -> Scheduler:
    made = Scheduler(app.ledger, app.schedules.values(), app.locks.instance, app.enqueue)
    for schedule in app.schedules.values():
        made._register(schedule)
    return made


def ticks(app) -> list[str]:
    return sorted(row[0] for row in sql(app.ledger, "SELECT record_key FROM {s}processing_queue"))


def declare(app, **options) -> None:
    @app.schedule("0 * * * *", **options)
    def report(record) -> None:
        """Every hour."""


def turn_until_nothing_is_due(one: Scheduler) -> None:
    while one.turn() == 0.0:
        pass


@pytest.fixture
def moving(app):
    """The app's ledger, with a clock that can be moved."""
    with LedgerClock(app.ledger) as clock:
        yield clock


def test_each_tick_is_one_record_whoever_is_quicker(app, make_app, moving):
    """Three schedulers, 24 hours, all of them at once: 24 records."""
    apps = [app, make_app(on=app), make_app(on=app)]
    for one in apps:
        declare(one)
    schedulers = [scheduler(one) for one in apps]
    for _ in range(24):
        moving.advance(3600)
        threads = [threading.Thread(target=turn_until_nothing_is_due, args=(one,)) for one in schedulers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = ticks(app)
    assert len(found) == len(set(found)) == 24
    assert app.ledger.run("schedules")[0].ticks == 24


def test_the_ledger_lets_a_tick_pass_once_even_if_its_record_was_forgotten(app, moving):
    """The key would not keep it from a second try for ever: its history is pruned one day."""
    declare(app)
    first, second = scheduler(app), scheduler(app)
    moving.advance(3600)
    turn_until_nothing_is_due(first)
    sql(app.ledger, "DELETE FROM {s}processing_queue")
    sql(app.ledger, "DELETE FROM {s}record_keys")
    turn_until_nothing_is_due(second)
    assert ticks(app) == []


def test_the_record_and_the_tick_are_one_commit(app, moving, monkeypatch):
    declare(app)
    one = scheduler(app)
    moving.advance(3600)

    def crash(*_args, **_named):
        raise RuntimeError("killed between the two")

    real, one._enqueue = one._enqueue, crash
    with pytest.raises(RuntimeError):
        one.turn()
    one._enqueue = real
    turn_until_nothing_is_due(one)
    assert len(ticks(app)) == 1


@pytest.mark.parametrize(("missed", "records"), [("skip", 0), ("once", 1), ("all", 10)])
def test_ticks_that_nobody_was_there_for(app, moving, missed, records):
    declare(app, missed=missed)
    scheduler(app)
    moving.advance(
        10 * 3600 + 1800
    )  # away for ten ticks, and half an hour past the last one if it is past one
    sql(app.ledger, "UPDATE {s}schedules SET updated_at = updated_at")
    late = scheduler(app)
    turn_until_nothing_is_due(late)
    assert len(ticks(app)) - records in (0, 1), "where the hour stands when the test runs decides on one more"


def test_a_new_schedule_has_missed_nothing(app):
    declare(app, missed="all")
    turn_until_nothing_is_due(scheduler(app))
    assert ticks(app) == []


def test_a_changed_schedule_begins_anew_and_the_old_version_leaves_it_alone(app, make_app, moving, caplog):
    other = make_app(on=app)
    declare(app)

    @other.schedule("*/10 * * * *", name="report")
    def report(record) -> None:
        """Every ten minutes now."""

    old, new = scheduler(app), scheduler(other)
    moving.advance(3600)
    turn_until_nothing_is_due(old)
    assert ticks(app) == []
    assert "another version of the program" in caplog.text
    turn_until_nothing_is_due(new)
    assert ticks(app)


def test_a_draining_flow_drops_its_ticks_and_says_so(app, moving, caplog):
    declare(app)
    one = scheduler(app)
    app.ledger.run("flow_register", **app.flows["report"].limits)
    app.ledger.set_flow_state("report", "draining", None)
    moving.advance(3600)
    turn_until_nothing_is_due(one)
    assert ticks(app) == []
    assert "is dropped" in caplog.text


def test_a_schedule_over_a_flow_and_two_for_one_flow(app):
    @app.schedule("0 6 * * *", name="morning", payload={"part": 1})
    @app.schedule("0 18 * * *", name="evening", payload={"part": 2}, priority=5)
    @app.flow("report", max_attempts=2)
    def report(record) -> None:
        """Twice a day."""

    assert set(app.schedules) == {"morning", "evening"}
    assert {one.flow for one in app.schedules.values()} == {"report"}
    assert app.flows["report"].max_attempts == 2
    with pytest.raises(ConfigurationError, match="name of its own"):
        app.schedule("0 7 * * *", name="morning")(report)


def test_a_program_runs_schedules_and_their_records(app):
    seen = []
    enough = threading.Event()

    @app.schedule("* * * * * *", payload={"for": "everybody"})
    def tick(record) -> None:
        seen.append(record.payload)
        if len(seen) > 1:
            enough.set()

    with app.program():
        assert enough.wait(30)
    assert seen[0]["schedule"] == "tick"
    assert seen[0]["for"] == "everybody"
    assert seen[0]["tick"] < seen[1]["tick"]
