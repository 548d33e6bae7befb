"""Elections: one leads, the others stand in line, and a leader that cannot renew knows by its own clock."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rowlock import DistributedLock, LeaderElection, LeaseLost, LedgerUnavailable, Refused, clock
from tests.support.ledgers import sql
from tests.support.waiting import eventually


@pytest.fixture
def other(app, make_app):
    return make_app(on=app)


def break_renewals(app, monkeypatch) -> None:
    def broken(*_args):
        raise LedgerUnavailable("the cable is out")

    monkeypatch.setattr(app.locks.keeper._heartbeat.locks, "renew", broken)


def test_one_leads_and_the_next_takes_over_at_once(app, other):
    with other.leader("reports") as second:
        with app.leader("reports", ttl=60) as first:
            eventually(lambda: first.is_leader or second.is_leader)
            leader, waiting = (first, second) if first.is_leader else (second, first)
            token = leader.lease.token
            assert not waiting.is_leader
            assert waiting.lease is None
            eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 1)
            leader.resign()
            assert waiting.wait(30)
            assert waiting.lease.token > token
            eventually(lambda: not leader.is_leader)
        assert second.wait(30), "whoever is left leads"


def test_callbacks_hear_of_both(app):
    told = []
    election = app.leader("reports")

    @election.on_elected
    def elected(lease) -> None:
        told.append(("elected", lease.token, election.is_leader))

    @election.on_lost
    def lost() -> None:
        told.append(("lost", election.is_leader))

    with election:
        assert election.wait(30)
        eventually(lambda: told)
    assert told == [("elected", 1, True), ("lost", False)]


def test_the_next_leader_is_let_in_after_the_last_one_was_told(app, other):
    events = []
    gate = threading.Event()
    election = app.leader("reports")
    election.on_lost(lambda: (gate.wait(30), events.append("the old one is told")))
    next_one = other.leader("reports")
    next_one.on_elected(lambda _lease: events.append("the new one leads"))
    with election:
        election.wait(30)
        with next_one:
            eventually(lambda: other.locks._bells, "the candidate")
            election.resign()
            assert not next_one.wait(0.2)
            gate.set()
            assert next_one.wait(30)
            eventually(lambda: len(events) >= 2)
            assert events[:2] == ["the old one is told", "the new one leads"]


def test_is_leader_turns_false_by_the_local_clock_alone(app, monkeypatch):
    with app.leader("reports", ttl=60) as election:
        assert election.wait(30)
        break_renewals(app, monkeypatch)
        left = election.lease.seconds_left
        (row,) = app.ledger.locks.look("leader:reports")
        assert left < row.seconds_left, "before anybody else could be elected"
        real = clock.monotonic
        monkeypatch.setattr(clock, "monotonic", lambda: real() + left)
        assert not election.is_leader
        assert election.lease is None


def test_a_callback_that_raises_gives_the_lead_away(app, other, caplog):
    election = app.leader("reports")
    election.on_elected(lambda _lease: 1 / 0)
    with election:
        eventually(lambda: "this instance resigns" in caplog.text)
        with other.leader("reports") as next_one:
            assert next_one.wait(30)


def test_an_election_is_started_once(app):
    with app.leader("reports") as election, pytest.raises(Refused):
        election.start()


def test_async_for_yields_every_change(app, other):
    async def main() -> None:
        changes = []
        async for lease in app.leader("reports", ttl=1):
            changes.append(lease)
            if len(changes) == 1:
                assert lease.token == 1
                other.ledger.locks.force("leader:reports", 0, "by an operator")
            if len(changes) == 3:
                break
        assert changes[1] is None
        assert changes[2].token > 1

    asyncio.run(main())


# -- the faces -------------------------------------------------------------------------------------------------


def test_a_distributed_lock_is_taken_step_by_step(app, other):
    async def main() -> None:
        mine, theirs = DistributedLock(app, "edgar", ttl_seconds=60), DistributedLock(other, "edgar")
        assert await mine.acquire()
        assert await mine.acquire(), "it is ours already"
        assert not await theirs.acquire()
        await mine.renew()
        await mine.release()
        assert not mine.acquired
        await mine.release()
        with pytest.raises(LeaseLost):
            await mine.renew()
        async with theirs:
            assert await theirs.acquire()
        assert await mine.acquire()

    asyncio.run(main())


def test_a_distributed_lock_that_was_lost_says_so(app, other):
    async def main() -> None:
        lock = DistributedLock(app, "edgar", ttl_seconds=1)
        await lock.acquire()
        other.ledger.locks.force("edgar", 0, "by an operator")
        await asyncio.to_thread(lock.lease.lost.wait, 30)
        assert not lock.acquired
        with pytest.raises(LeaseLost):
            await lock.renew()
        assert await lock.acquire(), "and may be taken again, under a higher token"

    asyncio.run(main())


def test_a_leader_election_is_the_same_election(app, other):
    async def main() -> None:
        election = LeaderElection(app, "reports")
        assert await election.campaign()
        assert await election.campaign()
        assert election.is_leader
        with other.leader("reports") as rival:
            assert not await asyncio.to_thread(rival.wait, 0.2)
            assert election.lease.token == 1
            await election.resign()
            assert await asyncio.to_thread(rival.wait, 30)
            assert not await election.campaign()

    asyncio.run(main())
