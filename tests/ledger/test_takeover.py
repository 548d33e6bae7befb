"""Takeover: what a dead instance held is claimable again, and its old holder is refused."""

from __future__ import annotations

import pytest

from rowlock.ledger.rows import Completion
from tests.support.ledgers import add_flow, beat, claim, find, put, register, take_over

LEASE = 30.0


@pytest.fixture(autouse=True)
def _flow(ledger):
    add_flow(ledger)


def die(ledger, ledger_clock):
    """Whoever has not beaten is dead after one lease time."""
    ledger_clock.advance(LEASE + 1)
    return take_over(ledger)


def test_a_silent_instance_is_dead_after_one_lease_and_its_records_are_claimable(ledger, ledger_clock):
    [record_id] = put(ledger, "a")
    claim(ledger, register(ledger, LEASE))
    ledger_clock.advance(LEASE - 1)
    assert take_over(ledger) == (0, 0)
    assert find(ledger, record_id).status == "processing"
    ledger_clock.advance(2)
    assert take_over(ledger) == (1, 0)
    assert [held.id for held in claim(ledger, register(ledger, LEASE))] == [record_id]


def test_a_heartbeat_keeps_everything(ledger, ledger_clock):
    put(ledger, "a", "b")
    me = register(ledger, LEASE)
    claim(ledger, me)
    for _ in range(5):
        ledger_clock.advance(LEASE * 0.9)
        assert beat(ledger, me)
        assert take_over(ledger) == (0, 0)


def test_the_zombie_is_refused_and_the_new_holder_is_not(ledger, ledger_clock):
    put(ledger, "a")
    zombie = register(ledger, LEASE)
    [old] = claim(ledger, zombie)
    die(ledger, ledger_clock)
    heir = register(ledger, LEASE)
    [new] = claim(ledger, heir)
    assert new.token > old.token
    assert ledger.exchange(zombie, [Completion(old.id, old.token, "1")], [])[0] == set()
    assert ledger.reread({old.id: old.token}) == {old.id: "lost"}
    assert ledger.exchange(heir, [Completion(new.id, new.token, "2")], [])[0] == {new.id}
    assert find(ledger, old.id).result == "2"


def test_the_zombie_is_refused_even_before_anybody_claimed_again(ledger, ledger_clock):
    put(ledger, "a")
    zombie = register(ledger, LEASE)
    [old] = claim(ledger, zombie)
    die(ledger, ledger_clock)
    assert ledger.exchange(zombie, [Completion(old.id, old.token, "1")], [])[0] == set()


def test_a_takeover_is_kept_as_an_attempt(ledger, ledger_clock):
    put(ledger, "a")
    me = register(ledger, LEASE)
    [held] = claim(ledger, me)
    die(ledger, ledger_clock)
    [attempt] = ledger.run("attempts", id=held.id)
    assert (attempt.outcome, attempt.instance_id, attempt.token) == ("died", me, held.token)


def test_a_first_death_spends_no_attempt_because_it_may_be_a_neighbours_fault(ledger, ledger_clock):
    put(ledger, "a")
    claim(ledger, register(ledger, LEASE))
    die(ledger, ledger_clock)
    [held] = claim(ledger, register(ledger, LEASE))
    assert (held.attempt, held.deaths) == (1, 1)


def test_a_suspect_that_never_started_is_not_blamed(ledger, ledger_clock):
    put(ledger, "a")
    for _ in range(5):
        claim(ledger, register(ledger, LEASE))
        die(ledger, ledger_clock)
    [held] = claim(ledger, register(ledger, LEASE))
    assert held.deaths == 1


def test_three_deaths_are_enough(ledger, ledger_clock):
    [record_id] = put(ledger, "poison")
    fates = []
    for _ in range(3):
        [held] = claim(ledger, register(ledger, LEASE))
        assert ledger.start([(held.id, held.token)]) == {held.id}
        fates.append(die(ledger, ledger_clock))
    assert fates == [(1, 0), (1, 0), (0, 1)]
    row = find(ledger, record_id)
    assert (row.status, row.reason, row.deaths) == ("dead", "its workers died 3 times", 3)
    assert ledger.exchange(1, [Completion(held.id, held.token, "1")], [])[0] == set()


def test_a_death_on_the_last_attempt_is_the_end(ledger, ledger_clock):
    add_flow(ledger, max_attempts=1, max_deaths=10)
    [record_id] = put(ledger, "a")
    [held] = claim(ledger, register(ledger, LEASE))
    ledger.start([(held.id, held.token)])
    assert die(ledger, ledger_clock) == (0, 1)
    assert find(ledger, record_id).reason == "its worker died on the last of 1 attempts"


def test_an_instance_that_left_leaves_nothing_behind(ledger):
    put(ledger, "a")
    me = register(ledger, LEASE)
    claim(ledger, me)
    counters = {"completed": 1, "failed": 0, "stale_refused": 0, "takeovers": 0}
    ledger.run("instance_end", id=me, state="stopped", reason="bye", **counters)
    assert ledger.run("tick")[0].orphans
    assert take_over(ledger) == (1, 0)
    assert not ledger.run("tick")[0].orphans
