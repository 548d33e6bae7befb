"""Two connections, one step at a time: what a statement does that had to wait for another's transaction.

PostgreSQL only: on SQLite there is one writer at a time, and nothing between.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from rowlock.ledger.lock_table import NO_TICKET, HeldSlot, Wanted
from tests.support.ledgers import register, sql
from tests.support.waiting import eventually


@pytest.fixture
def kind() -> str:
    return "postgresql"


@pytest.fixture
def two(ledger) -> tuple[int, int]:
    ledger.locks.create("x", 1)
    return register(ledger), register(ledger)


def wanted(holder, request, ttl=10.0, slots=1) -> Wanted:
    return Wanted("x", slots, holder, request, ttl, None)


def take(on, ledger, wish, ticket=NO_TICKET) -> HeldSlot | None:
    """Inside an open transaction."""
    row = on.one("lock_take", {"ticket": ticket, "channel": ledger.locks.channel, **wish._asdict()})
    return HeldSlot("x", row.slot, row.token) if row else None


def fenced(on, held) -> bool:
    return on.one("lock_fence", {"commit": None, "ttl_ms": 60000, **held._asdict()}) is not None


@contextmanager
def meanwhile(ledger, act):
    """Runs `act` in a thread; it is waiting for a lock of ours when the block begins. Yields what it returns, later."""
    found: list = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'rowlock' "
        f"AND position('{ledger.settings.ledger_schema}' in query) > 0"
    )
    try:
        eventually(lambda: sql(ledger, waiting)[0][0] == 1, "the other one waits")
        assert not found
        yield found
    finally:
        thread.join()


def end(transaction, *, commit: bool) -> None:
    """The transaction ends now, and whoever waits for it goes on."""
    transaction.connection.commit() if commit else transaction.connection.rollback()


@pytest.mark.parametrize("commit", [True, False])
def test_of_two_who_take_a_free_lease_the_second_waits_and_looks_again(ledger, two, commit):
    a, b = two
    with ledger.transaction() as first:
        mine = take(first, ledger, wanted(a, 1))
        with meanwhile(ledger, lambda: ledger.locks.take(wanted(b, 2))) as found:
            end(first, commit=commit)
    assert found == ([None] if commit else [HeldSlot("x", 0, mine.token)])


def test_of_two_who_take_over_the_second_goes_on_to_the_next_slot(ledger, ledger_clock, two):
    a, b = two
    ledger.locks.create("x", 2)
    for request in (1, 2):
        ledger.locks.take(wanted(a, request, slots=2))
    ledger_clock.advance(11)
    with ledger.transaction() as first:
        assert take(first, ledger, wanted(a, 3, slots=2)).slot == 0
        with meanwhile(ledger, lambda: ledger.locks.take(wanted(b, 4, slots=2))) as found:
            first.connection.commit()
    assert found[0].slot == 1


@pytest.mark.parametrize("commit", [True, False])
def test_a_taker_waits_for_a_renewal_that_came_just_in_time(ledger, ledger_clock, two, commit):
    a, b = two
    held = ledger.locks.take(wanted(a, 1))
    with ledger.transaction() as renewal:
        columns = {"names": ["x"], "slots": [0], "tokens": [held.token]}
        ledger_clock.advance(9)
        assert renewal.one("locks_renew", {"holder": a, **columns})
        ledger_clock.advance(2)  # the taker sees the version before, whose time is up
        with meanwhile(ledger, lambda: ledger.locks.take(wanted(b, 2))) as found:
            end(renewal, commit=commit)
    assert found == ([None] if commit else [HeldSlot("x", 0, held.token + 1)])


def test_a_stale_renewal_does_not_wait_for_whoever_takes_over(ledger, ledger_clock, two):
    a, b = two
    held = ledger.locks.take(wanted(a, 1))
    ledger_clock.advance(11)
    with ledger.transaction() as taking:
        assert take(taking, ledger, wanted(b, 2))
        assert ledger.locks.renew(a, [held]) == set()
    assert ledger.locks.renew(a, [held]) == set()
    assert ledger.locks.look("x")[0].holder == b


@pytest.mark.parametrize("commit", [True, False])
def test_a_fence_waits_for_a_force_and_is_refused_if_it_happened(ledger, two, commit):
    held = ledger.locks.take(wanted(two[0], 1))

    def write() -> bool:
        with ledger.transaction() as transaction:
            return fenced(transaction, held)

    with ledger.transaction() as forcing:
        params = {"name": "x", "slot": 0, "token": None, "detail": "?", "channel": ledger.locks.channel}
        assert forcing.one("lock_force", params)
        with meanwhile(ledger, write) as found:
            end(forcing, commit=commit)
    assert found == [not commit]


def test_a_force_waits_for_the_fenced_commit(ledger, two):
    """What was fenced is committed before the token that follows is given out."""
    held = ledger.locks.take(wanted(two[0], 1))
    with ledger.transaction() as writing:
        assert fenced(writing, held)
        with meanwhile(ledger, lambda: ledger.locks.force("x", 0, "?")) as found:
            writing.connection.commit()
    assert found[0].token == held.token


def test_a_release_waits_for_the_fenced_commit_of_another_thread(ledger, two):
    held = ledger.locks.take(wanted(two[0], 1))
    with ledger.transaction() as writing:
        assert fenced(writing, held)
        with meanwhile(ledger, lambda: ledger.locks.release(held)) as found:
            writing.connection.commit()
    assert found == ["released"]


def test_a_waiter_that_queued_during_the_release_is_served_at_its_next_look(ledger, two):
    """The release could not see it, and told nobody; looking again is the truth, the telling only a hint."""
    a, b = two
    held = ledger.locks.take(wanted(a, 1))
    with ledger.transaction() as releasing:
        assert releasing.one("lock_release", {"channel": ledger.locks.channel, **held._asdict()})
        ticket = ledger.locks.queue("x", b, 30)
        assert ledger.locks.take(wanted(b, 2), ticket) is None
    assert ledger.locks.take(wanted(a, 3)) is None, "nobody else gets in before it"
    assert ledger.locks.take(wanted(b, 2), ticket)


def test_a_lost_reply_to_a_take_is_asked_for_again_while_the_first_is_under_way(ledger, two):
    """The connection broke, but the server goes on: the second try waits for the first, and is given the same."""
    wish = wanted(two[0], 1)
    with ledger.transaction() as first:
        held = take(first, ledger, wish)
        with meanwhile(ledger, lambda: ledger.locks.take(wish)) as found:
            first.connection.commit()
    assert found == [held]
    assert sql(ledger, "SELECT count(*) FROM {s}lock_holdings")[0][0] == 0
