"""Lanes: how much is claimed ahead, and from where."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rowlock import Rowlock, clock
from rowlock.ledger.rows import Held, Wish
from rowlock.queue.flow import Flow
from rowlock.queue.lane import Lane
from rowlock.queue.record import Record


@pytest.fixture
def now(monkeypatch):
    """A clock that the test moves."""
    moment = SimpleNamespace(at=1000.0)
    monkeypatch.setattr(clock, "monotonic", lambda: moment.at)
    return moment


@pytest.fixture
def lane(now):
    flow = Flow("f", handler=print, concurrency=4)
    return Lane(flow, SimpleNamespace(slots=4), max_prefetch=100)


def held(number, priority=0):
    return Held(number, 1, "f", str(number), "1", 1, 0, priority, 0.0)


def hold(lane, *numbers):
    records = [Record(held(number), None) for number in numbers]
    lane.in_hand.update((record.id, record) for record in records)
    return records


def test_a_fresh_lane_claims_what_its_slots_can_run(lane):
    assert lane.room() == 4
    hold(lane, 1, 2, 3)
    assert lane.room() == 1
    hold(lane, 4)
    assert lane.wish(1000.0) is None


def test_slow_handlers_claim_nothing_ahead(lane, now):
    for number, record in enumerate(hold(lane, 1, 2, 3, 4)):
        now.at += 1
        assert lane.finished(record, now.at), number
    assert lane.room() == 4


def test_fast_handlers_claim_ahead_up_to_the_limit(lane, now):
    for round_ in range(20):
        for record in hold(lane, *range(round_ * 500, round_ * 500 + 500)):
            lane.finished(record, now.at)
        now.at += 0.1
        lane.finished(*hold(lane, 10**6 + round_), now.at)
    assert lane.room() == 4 + 100


def test_a_record_leaves_once(lane):
    [record] = hold(lane, 1)
    assert lane.finished(record, 1000.0)
    assert not lane.finished(record, 1000.0)


def test_the_next_claim_begins_where_the_last_one_ended(lane):
    wish = lane.wish(1000.0)
    assert (wish.rank, wish.after) == (-32768, 0)
    lane.claimed([held(1, 5), held(2, 5), held(3), held(4)], wish, 1000.0, 1000.0)
    again = lane.wish(1000.0)
    assert (again.rank, again.after) == (0, 4)


def test_a_claim_that_found_too_little_starts_over(lane):
    lane.claimed([held(1)], Wish("f", 4, 0, 9), 1000.0, 1000.0)
    assert lane.wish(1000.0).after == 0


def test_the_start_is_looked_at_again_and_again(lane):
    wish = lane.wish(1000.0)
    lane.claimed([held(n) for n in range(1, 5)], wish, 1000.0, 1000.0)
    assert lane.wish(1000.01).after == 4
    assert lane.wish(1000.06).after == 0


def test_a_slow_look_at_the_start_takes_a_tenth_of_the_time_at_most(lane):
    wish = lane.wish(1000.0)
    lane.claimed([held(n) for n in range(1, 5)], wish, sent=1000.0, now=1000.3)
    assert lane.wish(1003.0).after == 4
    assert lane.wish(1003.4).after == 0


def test_a_limited_flow_claims_nothing_ahead_however_fast_it_is(now):
    flow = Flow("f", handler=print, limit=Rowlock().limit("api", rate="10/s"))
    lane = Lane(flow, SimpleNamespace(slots=4), max_prefetch=100)
    lane._rate = 1000.0
    assert lane.room() == 4
