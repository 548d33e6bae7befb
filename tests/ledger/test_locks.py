"""Named leases in the ledger: one holder a slot, tokens that only rise, waiters in order, a history that adds up."""

from __future__ import annotations

import pytest

from rowlock.ledger.lock_table import NO_TICKET, HeldSlot, Wanted
from tests.support.ledgers import register, sql


@pytest.fixture
def two(ledger) -> tuple[int, int]:
    return register(ledger), register(ledger)


_requests = iter(range(1, 10**9))


def take(ledger, holder, name="x", *, slots=1, ttl=10.0, ticket=NO_TICKET, request=None) -> HeldSlot | None:
    wanted = Wanted(name, slots, holder, request or next(_requests), ttl, None)
    held = ledger.locks.take(wanted, ticket)
    if held is None and len(ledger.locks.look(name, slots)) < slots:
        ledger.locks.create(name, slots)
        return ledger.locks.take(wanted, ticket)
    return held


def holdings(ledger):
    query = "SELECT slot, token, holder, ended FROM {s}lock_holdings ORDER BY lock_name, slot, token"
    return [tuple(row) for row in sql(ledger, query)]


def test_one_holder_at_a_time(ledger, two):
    a, b = two
    first = take(ledger, a)
    assert first == HeldSlot("x", 0, 1)
    assert take(ledger, b) is None
    assert take(ledger, a) is None  # the same instance is no exception: another task may hold it


def test_another_name_is_another_lease(ledger, two):
    assert take(ledger, two[0], "x")
    assert take(ledger, two[1], "y")


def test_a_released_lease_is_free_and_its_token_is_stale(ledger, two):
    a, b = two
    first = take(ledger, a)
    assert ledger.locks.release(first) == "released"
    second = take(ledger, b)
    assert second.token > first.token
    assert ledger.locks.renew(a, [first]) == set()
    assert ledger.locks.renew(b, [second]) == {("x", 0)}


def test_an_expired_lease_is_taken_over_and_its_holder_is_refused(ledger, ledger_clock, two):
    a, b = two
    first = take(ledger, a, ttl=10)
    ledger_clock.advance(10.1)
    second = take(ledger, b)
    assert second.token > first.token
    assert ledger.locks.renew(a, [first]) == set()
    assert ledger.locks.release(first) is None
    assert holdings(ledger) == [(0, first.token, a, "expired")]


def test_an_expired_lease_is_not_renewed_even_if_nobody_took_it(ledger, ledger_clock, two):
    first = take(ledger, two[0], ttl=10)
    ledger_clock.advance(10.1)
    assert ledger.locks.renew(two[0], [first]) == set()


def test_a_renewed_lease_goes_on(ledger, ledger_clock, two):
    a, b = two
    first = take(ledger, a, ttl=10)
    for _ in range(5):
        ledger_clock.advance(9)
        assert ledger.locks.renew(a, [first]) == {("x", 0)}
        assert take(ledger, b) is None


def test_many_are_renewed_by_one_statement_and_only_the_stale_one_is_refused(ledger, two):
    a, b = two
    held = [take(ledger, a, f"n{number}") for number in range(20)]
    stale = held[7]
    ledger.locks.release(stale)
    take(ledger, b, stale.name)
    assert ledger.locks.renew(a, held) == {(one.name, 0) for one in held if one is not stale}


def test_a_renewal_moves_the_holding_to_the_next_incarnation(ledger, two):
    a, b = two
    held = take(ledger, a)
    ledger.locks.renew(b, [held])
    assert ledger.locks.look("x")[0].holder == b


def test_a_take_whose_reply_was_lost_is_adopted_by_its_request(ledger, two):
    a, b = two
    first = take(ledger, a, request=77)
    assert take(ledger, b, request=78) is None
    assert take(ledger, a, request=77) == first
    assert holdings(ledger) == []


def test_a_release_whose_reply_was_lost_is_no_loss(ledger, two):
    first = take(ledger, two[0])
    ledger.locks.release(first)
    if ledger.dialect == "sqlite":
        pytest.skip("there is no reply to lose")
    assert ledger.locks.release(first) == "released"


def test_force_raises_the_token_and_leaves_a_line(ledger, two):
    a, b = two
    first = take(ledger, a)
    forced = ledger.locks.force("x", 0, "by somebody")
    assert (forced.token, forced.holder) == (first.token, a)
    assert ledger.locks.renew(a, [first]) == set()
    assert ledger.locks.release(first) is None
    second = take(ledger, b)
    assert second.token > first.token
    assert holdings(ledger) == [(0, first.token, a, "forced")]
    assert ledger.run("lock_holding", **first._asdict())[0].detail == "by somebody"


def test_force_on_a_free_lease_does_nothing(ledger, two):
    assert ledger.locks.force("x", 0, "?") is None
    ledger.locks.release(take(ledger, two[0]))
    assert ledger.locks.force("x", 0, "?") is None


def test_slots_are_as_many_holders(ledger, ledger_clock, two):
    a, b = two
    held = [take(ledger, a, slots=3) for _ in range(3)]
    assert [one.slot for one in held] == [0, 1, 2]
    assert take(ledger, b, slots=3) is None
    ledger.locks.release(held[1])
    assert take(ledger, b, slots=3).slot == 1
    ledger_clock.advance(11)
    assert take(ledger, b, slots=3).slot == 0


def test_a_smaller_budget_uses_fewer_slots(ledger, two):
    for _ in range(2):
        take(ledger, two[0], slots=3)
    assert take(ledger, two[1], slots=2) is None
    assert take(ledger, two[1], slots=3)


# -- waiters ---------------------------------------------------------------------------------------------------


def test_who_came_first_is_served_first(ledger, two):
    a, b = two
    first = take(ledger, a)
    tickets = [ledger.locks.queue("x", b, 5) for _ in range(3)]
    assert tickets == sorted(tickets)
    ledger.locks.release(first)
    assert take(ledger, a) is None, "nobody jumps the queue"
    assert take(ledger, b, ticket=tickets[1]) is None
    served = take(ledger, b, ticket=tickets[0])
    assert served
    ledger.locks.release(served)
    assert take(ledger, b, ticket=tickets[2]) is None
    assert take(ledger, b, ticket=tickets[1])


def test_a_silent_waiter_loses_its_place(ledger, ledger_clock, two):
    a, b = two
    first = take(ledger, a, ttl=100)
    dead, alive = ledger.locks.queue("x", a, 5), ledger.locks.queue("x", b, 5)
    ledger_clock.advance(4)
    assert ledger.run("lock_wait", ticket=alive, patience=5)
    ledger_clock.advance(2)
    ledger.locks.release(first)
    assert ledger.run("lock_wait", ticket=dead, patience=5) == []
    assert take(ledger, b, ticket=alive)


def test_who_leaves_the_line_makes_room(ledger, two):
    a, b = two
    first = take(ledger, a)
    one, other = ledger.locks.queue("x", a, 5), ledger.locks.queue("x", b, 5)
    ledger.locks.release(first)
    ledger.locks.leave(one)
    assert take(ledger, b, ticket=other)


def test_waiting_for_one_lease_is_not_waiting_for_another(ledger, two):
    ledger.locks.queue("y", two[0], 5)
    assert take(ledger, two[1], "x")


# -- the fence -------------------------------------------------------------------------------------------------


def fenced(ledger, held: HeldSlot) -> bool:
    with ledger.transaction() as transaction:
        return bool(transaction.all("lock_fence", held._asdict() | {"commit": 1, "ttl_ms": 1000}))


def test_the_fence_lets_only_the_holder_through(ledger, ledger_clock, two):
    a, b = two
    first = take(ledger, a, ttl=10)
    assert fenced(ledger, first)
    ledger_clock.advance(10.1)
    assert not fenced(ledger, first), "its time is up, even if nobody has taken it"
    second = take(ledger, b)
    assert not fenced(ledger, first)
    assert fenced(ledger, second)
    ledger.locks.release(second)
    assert not fenced(ledger, second)


def test_look_says_who_holds_it_and_who_waits(ledger, two):
    a, b = two
    take(ledger, a, ttl=10)
    ledger.locks.queue("x", b, 5)
    (row,) = ledger.locks.look("x")
    assert (row.holder, row.holder_name, row.ahead) == (a, "test", 1)
    assert 9 < row.seconds_left <= 10
    assert row.held_for < 1


def test_old_holdings_are_forgotten_and_tokens_are_not(ledger, ledger_clock, two):
    first = take(ledger, two[0])
    ledger.locks.release(first)
    ledger_clock.advance(100)
    ledger.run("prune_holdings", seconds=50)
    assert holdings(ledger) == []
    assert take(ledger, two[0]).token > first.token
