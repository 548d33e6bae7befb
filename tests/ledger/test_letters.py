"""Dead letters: found, grouped, counted, driven again, with their history kept."""

from __future__ import annotations

import pytest

from rowlock.errors import NotFound, Refused
from rowlock.ledger.rows import Completion, Failure
from rowlock.queue.letters import DeadLetters
from tests.support.ledgers import add_flow, claim, find, put, register


@pytest.fixture
def letters(ledger):
    """Five dead of one thing, two of another in another flow."""
    me = register(ledger)
    for flow, count, fingerprint in (("f", 5, "ValueError-1"), ("g", 2, "KeyError-2")):
        add_flow(ledger, flow)
        put(ledger, *(f"{flow}{n}" for n in range(count)), flow=flow)
        held = claim(ledger, me, flow=flow)
        ledger.fail(
            me,
            [Failure(h.id, h.token, True, 0, "bad", "failed", "E", "bad", None, fingerprint) for h in held],
        )
    return DeadLetters(ledger)


def test_groups_are_by_flow_and_fingerprint_largest_first(letters):
    groups = [(g["flow"], g["fingerprint"], g["records"]) for g in letters.groups()]
    assert groups == [("f", "ValueError-1", 5), ("g", "KeyError-2", 2)]
    assert [g["records"] for g in letters.groups(flow="g")] == [2]


def test_counts_follow_the_filter(letters):
    assert letters.count() == 7
    assert letters.count(flow="f") == 5
    assert letters.count(fingerprint="KeyError-2") == 2
    assert letters.count(flow="f", fingerprint="KeyError-2") == 0


def test_a_redrive_follows_the_filter_and_tells_how_many(letters):
    seen = []
    assert letters.redrive(fingerprint="ValueError-1", progress=seen.append) == 5
    assert seen[-1] == 5
    assert letters.count() == 2


def test_a_canary_redrives_a_few(letters):
    assert letters.redrive(flow="f", limit=2) == 2
    assert letters.count(flow="f") == 3


def test_a_redriven_record_starts_anew_and_keeps_what_it_went_through(letters, ledger):
    [record_id] = [row.id for row in ledger.run("dead_ids", flow="f", fingerprint=None, after=0, limit=1)]
    dead = find(ledger, record_id)
    letters.redrive_one(record_id)
    live = find(ledger, record_id)
    assert (live.status, live.attempt, live.deaths, live.redrives) == ("pending", 0, 0, 1)
    assert live.payload == dead.payload
    assert live.token > dead.token
    assert [row.outcome for row in ledger.run("attempts", id=record_id)] == ["failed", "redriven"]
    me = register(ledger)
    held = claim(ledger, me, limit=1)[0]
    assert (held.id, held.attempt) == (record_id, 1)
    assert ledger.exchange(me, [Completion(held.id, dead.token, "1")], [])[0] == set()
    assert ledger.exchange(me, [Completion(held.id, held.token, "1")], [])[0] == {record_id}


def test_a_redriven_records_key_is_still_taken(letters, ledger):
    letters.redrive(flow="f")
    assert put(ledger, "f0", flow="f", batch=99) == []


def test_what_is_not_dead_is_not_driven_again(letters, ledger):
    [record_id] = put(ledger, "fresh", batch=5)
    with pytest.raises(Refused, match="is pending"):
        letters.redrive_one(record_id)
    with pytest.raises(NotFound, match="no record 424242"):
        letters.redrive_one(424242)


def test_a_cancelled_record_can_be_driven_again(ledger):
    add_flow(ledger)
    [record_id] = put(ledger, "a")
    ledger.cancel([record_id], "oops")
    DeadLetters(ledger).redrive_one(record_id)
    assert find(ledger, record_id).status == "pending"


def test_a_record_that_waits_can_be_hurried(ledger):
    add_flow(ledger)
    me = register(ledger)
    put(ledger, "a")
    [held] = claim(ledger, me)
    ledger.fail(me, [Failure(held.id, held.token, False, 3600, "r", "failed", "E", "m", None, "fp")])
    assert ledger.hurry([held.id]) == [held.id]
    assert [row.id for row in claim(ledger, me)] == [held.id]
