"""The protocol as a state machine: whatever order things happen in, the promises of DESIGN §2 hold.

Three workers, each of which may fall silent and come back as a zombie, act on a few records. What must become of each
is the model's to say (`rowlock.proof.model`); after every step the ledger is compared with it, tokens and all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from rowlock.ledger.lock_table import HeldSlot, Wanted
from rowlock.ledger.rows import Completion, Failure, Release
from rowlock.proof.model import LEASE as LEASE_TABLE
from rowlock.proof.model import RECORD, Machine
from tests.support.ledgers import (
    add_flow,
    beat,
    claim,
    put,
    register,
    sql,
    take_over,
)
from tests.support.searching import search

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger
    from rowlock.ledger.ledger_clock import LedgerClock

LEASE = 30.0
NOT_PLAYED = {
    "start",
    "prune",
    "bury",
}  # they have tests of their own; a burial takes three deaths of one record
WORKERS = st.integers(0, 2)
TABLES = ("processing_queue", "processing_history", "record_keys", "record_attempts", "service_instances")


def holdings(machine):
    """A holding that was given out, however long ago; often, if there is one, one that still counts."""
    ever = st.sampled_from(machine.holdings)
    now = [(key, thing.token) for key, thing in machine.things.items() if thing.holder is not None]
    return st.one_of(ever, st.sampled_from(now)) if now else ever


class Protocol(RuleBasedStateMachine):
    """Set `ledger` and `clock` before use."""

    ledger: Ledger
    clock: LedgerClock

    @initialize()
    def begin(self):
        for table in TABLES:
            sql(self.ledger, f"DELETE FROM {{s}}{table}")
        add_flow(self.ledger)
        self.ledger.set_flow_state("f", "active", None)
        self.batch = 0
        self.paused = False
        self.workers = [register(self.ledger, LEASE) for _ in range(3)]
        self.model = Machine(RECORD)
        self.enqueue(list("wxyz"), 0)  # or half of all steps would find nothing to act on

    # -- what may happen -----------------------------------------------------------------------------------

    @rule(
        keys=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True),
        priority=st.integers(0, 2),
    )
    def enqueue_some(self, keys, priority):
        self.enqueue(keys, priority)

    def enqueue(self, keys, priority):
        self.batch += 1
        for id_ in put(self.ledger, *keys, priority=priority, batch=self.batch):
            assert self.model.do("enqueue", id_)

    @rule(worker=WORKERS, limit=st.integers(1, 4), revived=st.booleans())
    def claim(self, worker, limit, revived):
        if revived:
            self.restart(worker)
            self.pause_or_resume(paused=False)
        instance = self.workers[worker]
        held = claim(self.ledger, instance, limit=limit)
        assert len(held) <= limit
        assert not (held and self.paused)
        for row in held:
            assert self.model.do("claim", row.id, holder=instance), "claimed while somebody holds it"
            assert row.token == self.model.things[row.id].token

    @precondition(lambda self: self.model.holdings)
    @rule(data=st.data(), worker=WORKERS)
    def complete(self, data, worker):
        id_, token = data.draw(holdings(self.model))
        settled, _ = self.ledger.exchange(self.workers[worker], [Completion(id_, token, "1")], [])
        self._expect("complete", id_, token, settled)

    @precondition(lambda self: self.model.holdings)
    @rule(data=st.data(), final=st.booleans())
    def fail(self, data, final):
        id_, token = data.draw(holdings(self.model))
        failure = Failure(id_, token, final, 5.0, "why", "failed", "E", "m", None, "fp")
        settled = self.ledger.fail(1, [failure])
        self._expect("fail for good" if final else "fail", id_, token, settled)

    @precondition(lambda self: self.model.holdings)
    @rule(data=st.data(), delay=st.sampled_from([0.0, 5.0]))
    def release(self, data, delay):
        id_, token = data.draw(holdings(self.model))
        settled = self.ledger.release(1, [Release(id_, token, delay)])
        self._expect("postpone" if delay else "hand back", id_, token, settled)

    @precondition(lambda self: self.model.holdings)
    @rule(data=st.data())
    def say_how_far_it_is(self, data):
        id_, token = data.draw(holdings(self.model))
        rows = self.ledger.run("progress", id=id_, token=token, progress=0.5)
        self._expect("progress", id_, token, {id_} if rows else set())

    @precondition(lambda self: self.model.holdings)
    @rule(data=st.data())
    def start(self, data):
        id_, token = data.draw(holdings(self.model))
        self._expect("start", id_, token, self.ledger.start([(id_, token)]))

    def _expect(self, action, id_, token, settled):
        """Accepted if and only if the model accepts it: this holding is the one that counts."""
        before = replace(self.model.things[id_])
        accepted = self.model.do(action, id_, token=token)
        assert (settled == {id_}) == accepted, (
            f"{action} {id_}, token {token}: {settled}; the model: {before}"
        )

    @rule(worker=WORKERS)
    def fall_silent(self, worker):
        """Everybody else beats; this one does not, and is dead. It may go on acting: a zombie."""
        self.clock.advance(LEASE * 0.6)
        self._others_beat(worker)
        self.clock.advance(LEASE * 0.6)
        self._others_beat(worker)
        take_over(self.ledger)
        for id_ in self.model.held_by(self.workers[worker]):
            died = self.ledger.run("record_find", id=id_)[0].status == "dead"
            assert self.model.do("bury" if died else "take over", id_)

    def _others_beat(self, worker):
        for index, instance in enumerate(self.workers):
            if index != worker:
                beat(self.ledger, instance)

    @rule(worker=WORKERS)
    def come_back(self, worker):
        self.restart(worker)

    def restart(self, worker):
        """A new incarnation beside the zombie; only if the old one is gone, or it would hold its records for ever."""
        if not beat(self.ledger, self.workers[worker]):
            self.workers[worker] = register(self.ledger, LEASE)

    @rule()
    def time_passes(self):
        self.clock.advance(6.0)
        for instance in self.workers:
            beat(self.ledger, instance)
        waiting = self.model.within("retry_wait")
        assert self.ledger.promote(100) == len(waiting)
        for id_ in waiting:
            assert self.model.do("promote", id_)

    @precondition(lambda self: self.model.things)
    @rule(data=st.data())
    def hurry(self, data):
        id_ = data.draw(st.sampled_from(sorted(self.model.things)))
        waited = self.model.things[id_].state == "retry_wait"
        assert self.ledger.hurry([id_]) == ([id_] if waited else [])
        if waited:
            assert self.model.do("hurry", id_)

    @precondition(lambda self: self.model.things)
    @rule(data=st.data())
    def redrive(self, data):
        id_ = data.draw(st.sampled_from(sorted(self.model.things)))
        done = self.ledger.redrive([id_])
        assert done == ([id_] if self.model.do("redrive", id_) else [])

    @precondition(lambda self: self.model.things)
    @rule(data=st.data())
    def cancel(self, data):
        id_ = data.draw(st.sampled_from(sorted(self.model.things)))
        done = self.ledger.cancel([id_], "test")
        assert done == ([id_] if self.model.do("cancel", id_) else [])

    @rule()
    def pause(self):
        self.pause_or_resume(paused=True)

    def pause_or_resume(self, *, paused):
        self.ledger.set_flow_state("f", "paused" if paused else "active", "test")
        self.paused = paused

    # -- what must hold ----------------------------------------------------------------------------------

    @invariant()
    def the_ledger_and_the_model_agree(self):
        """Nothing is lost, nothing is in two places, and every state, token and holder is the one of the model."""
        if not hasattr(self, "model"):
            return
        live = sql(self.ledger, "SELECT id, status, token, holder FROM {s}processing_queue")
        settled = sql(self.ledger, "SELECT id, status, token, NULL FROM {s}processing_history")
        assert sorted(tuple(row) for row in live + settled) == sorted(
            (id_, thing.state, thing.token, thing.holder) for id_, thing in self.model.things.items()
        )


class LeaseProtocol(RuleBasedStateMachine):
    """A named lease: three that want it, any of which may act on a holding that ended long ago."""

    ledger: Ledger
    clock: LedgerClock

    @initialize()
    def begin(self):
        for table in ("service_locks", "lock_holdings", "lock_waiters", "service_instances"):
            sql(self.ledger, f"DELETE FROM {{s}}{table}")
        self.workers = [register(self.ledger, 1e6) for _ in range(3)]
        self.model = Machine(LEASE_TABLE)
        self.requests = {}
        self.ledger.locks.create("x", 1)
        assert self.model.do("create", "x")

    @property
    def lease(self):
        return self.model.things["x"]

    @rule(worker=WORKERS)
    def take(self, worker):
        self._take(worker, len(self.requests) + 1)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def ask_again(self, data):
        """The reply to a take was lost, however long ago: what is still held is found, and nothing is taken twice."""
        request = data.draw(st.sampled_from(sorted(self.requests)))
        self._take(self.requests[request][0], request)

    def _take(self, worker, request):
        held = self.ledger.locks.take(Wanted("x", 1, self.workers[worker], request, LEASE, None))
        if self.requests.get(request, (worker, None))[1] == self.lease.token:
            action = "take again"
        else:
            action = "take over" if self.lease.state == "expired" else "take"
        assert (held is not None) == self.model.do(action, "x", holder=worker)
        if held is not None:
            assert held.token == self.lease.token
            self.requests[request] = worker, held.token

    @precondition(lambda self: self.model.holdings)
    @rule(data=st.data(), worker=WORKERS, action=st.sampled_from(["renew", "fence", "release"]))
    def act_on_a_holding(self, data, worker, action):
        _, token = data.draw(holdings(self.model))
        held = HeldSlot("x", 0, token)
        match action:
            case "renew":
                done = bool(self.ledger.locks.renew(self.workers[worker], [held]))
            case "fence":
                done = bool(self.ledger.run("lock_fence", commit=1, ttl_ms=1000, **held._asdict()))
            case "release":
                # A release that is sent again finds what it did the first time, on PostgreSQL; it frees nothing.
                before = self._row()
                self.ledger.locks.release(held)
                done = before != self._row()
        assert done == self.model.do(action, "x", token=token)

    @rule()
    def force(self):
        taken = self.ledger.locks.force("x", 0, "by an operator")
        assert (taken is not None) == self.model.do("force", "x")

    @rule()
    def time_passes(self):
        self.clock.advance(LEASE + 1)
        self.model.do("expire", "x")

    def _row(self):
        return tuple(sql(self.ledger, "SELECT token, holder IS NULL FROM {s}service_locks")[0])

    @invariant()
    def the_ledger_and_the_model_agree(self):
        if hasattr(self, "model"):
            assert self._row() == (self.lease.token, self.lease.state == "free")

    @invariant()
    def the_history_of_holdings_adds_up(self):
        """Every holding that ended is noted once; the one that goes on is not."""
        if hasattr(self, "model"):
            ended = [row[0] for row in sql(self.ledger, "SELECT token FROM {s}lock_holdings ORDER BY token")]
            going_on = set() if self.lease.state == "free" else {self.lease.token}
            assert ended == sorted({token for _, token in self.model.holdings} - going_on)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("protocol", [Protocol, LeaseProtocol])
def test_the_promises_hold_in_any_order(protocol, kind, tmp_path, request):
    search(protocol, kind, tmp_path, request)


class Chosen:
    """Stands in for Hypothesis where a test chooses for itself."""

    def __init__(self, value):
        self.value = value

    def draw(self, _strategy):
        return self.value


@pytest.fixture
def played(monkeypatch):
    """The actions that the model accepted."""
    accepted, do = set(), Machine.do

    def noted(self, action, key, **more):
        done = do(self, action, key, **more)
        accepted.update({action} if done else ())
        return done

    monkeypatch.setattr(Machine, "do", noted)
    return accepted


def test_every_arrow_of_a_record_is_walked_once(ledger, ledger_clock, played):
    """Chance may leave some out; this does not."""
    Protocol.ledger, Protocol.clock = ledger, ledger_clock
    walk = Protocol()

    def step(rule_, *arguments, **more):
        getattr(walk, rule_)(*arguments, **more)
        walk.the_ledger_and_the_model_agree()

    def claim_all():
        step("come_back", 0)
        step("claim", 0, 4, revived=False)
        return walk.model.holdings[-len(walk.model.held_by(walk.workers[0])) :]

    walk.begin()
    first, second, third, fourth = (Chosen(holding) for holding in claim_all())
    step("say_how_far_it_is", first)
    step("complete", first, 0)
    step("fail", second, final=False)
    step("hurry", Chosen(second.value[0]))
    step("fail", third, final=True)
    step("redrive", Chosen(third.value[0]))
    step("release", fourth, delay=5.0)
    step("time_passes")
    for holding in claim_all():
        step("release", Chosen(holding), delay=0.0)
    for _ in range(3):
        for holding in claim_all():
            step("start", Chosen(holding))
        step("fall_silent", 0)
    step("redrive", Chosen(second.value[0]))
    step("cancel", Chosen(second.value[0]))
    assert played == {arrow.action for arrow in RECORD} - {
        "prune"
    }  # what is pruned is not there to be compared


def test_every_arrow_of_a_lease_is_walked_once(ledger, ledger_clock, played):
    LeaseProtocol.ledger, LeaseProtocol.clock = ledger, ledger_clock
    walk = LeaseProtocol()
    walk.begin()

    def act(action):
        walk.act_on_a_holding(Chosen(walk.model.holdings[-1]), 0, action)

    for step in (
        lambda: walk.take(0),
        lambda: walk.ask_again(Chosen(1)),
        lambda: act("renew"),
        lambda: act("fence"),
        walk.time_passes,
        lambda: act("fence"),  # refused: its time is up, though nobody has taken it
        lambda: act("renew"),
        lambda: walk.take(1),
        lambda: act("release"),
        lambda: walk.take(2),
        walk.force,
    ):
        step()
        walk.the_ledger_and_the_model_agree()
        walk.the_history_of_holdings_adds_up()
    assert played == {arrow.action for arrow in LEASE_TABLE}
