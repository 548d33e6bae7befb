"""The protocol as a state machine: whatever order things happen in, the promises of DESIGN §2 hold.

Three workers, each of which may fall silent and come back as a zombie, act on a few records. The model remembers
every holding that was ever given out; the invariants say that only the latest one ever counts.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rowlock.ledger.ledger import Ledger
from rowlock.ledger.rows import Completion, Failure, Release
from tests.support.ledgers import (
    LedgerClock,
    add_flow,
    beat,
    claim,
    make_settings,
    put,
    register,
    sql,
    take_over,
)

LEASE = 30.0
WORKERS = st.integers(0, 2)
TABLES = ("processing_queue", "processing_history", "record_keys", "record_attempts", "service_instances")


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
        self.accepted: set[int] = set()
        self.workers = [register(self.ledger, LEASE) for _ in range(3)]
        self.holdings: list[tuple[int, int]] = []  # every (id, token) ever given out
        self.holder: dict[int, tuple[int, int]] = {}  # id → (worker's index, token) of the one that counts
        self.tokens: dict[int, int] = {}  # the highest token seen
        self.completed: set[int] = set()
        self.dead: set[int] = set()
        self.cancelled: set[int] = set()

    # -- what may happen -----------------------------------------------------------------------------------

    @rule(
        keys=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True),
        priority=st.integers(0, 2),
    )
    def enqueue(self, keys, priority):
        self.batch += 1
        self.accepted |= set(put(self.ledger, *keys, priority=priority, batch=self.batch))

    @rule(worker=WORKERS, limit=st.integers(1, 4))
    def claim(self, worker, limit):
        held = claim(self.ledger, self.workers[worker], limit=limit)
        assert len(held) <= limit
        for row in held:
            assert row.id not in self.holder, "claimed while somebody holds it"
            assert row.token > self.tokens.get(row.id, 0), "the token did not rise"
            self.tokens[row.id] = row.token
            self.holder[row.id] = (worker, row.token)
            self.holdings.append((row.id, row.token))

    @precondition(lambda self: self.holdings)
    @rule(data=st.data(), worker=WORKERS)
    def complete(self, data, worker):
        id_, token = data.draw(st.sampled_from(self.holdings))
        settled, _ = self.ledger.exchange(self.workers[worker], [Completion(id_, token, "1")], [])
        if self._expect(id_, token, settled):
            self.completed.add(id_)

    @precondition(lambda self: self.holdings)
    @rule(data=st.data(), final=st.booleans())
    def fail(self, data, final):
        id_, token = data.draw(st.sampled_from(self.holdings))
        failure = Failure(id_, token, final, 5.0, "why", "failed", "E", "m", None, "fp")
        if self._expect(id_, token, self.ledger.fail(1, [failure])) and final:
            self.dead.add(id_)

    @precondition(lambda self: self.holdings)
    @rule(data=st.data())
    def release(self, data):
        id_, token = data.draw(st.sampled_from(self.holdings))
        self._expect(id_, token, self.ledger.release(1, [Release(id_, token, 0.0)]))

    def _expect(self, id_, token, settled):
        """Accepted if and only if this holding is the one that counts."""
        counts = id_ in self.holder and self.holder[id_][1] == token
        assert (settled == {id_}) == counts, (
            f"record {id_}, token {token}: settled={settled}, holder={self.holder.get(id_)}"
        )
        if counts:
            del self.holder[id_]
        return counts

    @rule(worker=WORKERS)
    def fall_silent(self, worker):
        """Everybody else beats; this one does not, and is dead. It may go on acting: a zombie."""
        self.clock.advance(LEASE * 0.6)
        self._others_beat(worker)
        self.clock.advance(LEASE * 0.6)
        self._others_beat(worker)
        take_over(self.ledger)
        for id_, (holder, _token) in list(self.holder.items()):
            if holder == worker:
                del self.holder[id_]
                row = self.ledger.run("record_find", id=id_)[0]
                if row.status == "dead":
                    self.dead.add(id_)

    def _others_beat(self, worker):
        for index, instance in enumerate(self.workers):
            if index != worker:
                beat(self.ledger, instance)

    @rule(worker=WORKERS)
    def restart(self, worker):
        """A new incarnation beside the zombie; only if the old one is gone, or it would hold its records for ever."""
        if not beat(self.ledger, self.workers[worker]):
            self.workers[worker] = register(self.ledger, LEASE)

    @rule()
    def time_passes(self):
        self.clock.advance(6.0)
        for instance in self.workers:
            beat(self.ledger, instance)
        self.ledger.promote(100)

    @precondition(lambda self: self.dead | self.cancelled)
    @rule(data=st.data())
    def redrive(self, data):
        id_ = data.draw(st.sampled_from(sorted(self.dead | self.cancelled)))
        assert self.ledger.redrive([id_]) == [id_]
        self.dead.discard(id_)
        self.cancelled.discard(id_)

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def cancel(self, data):
        id_ = data.draw(st.sampled_from(sorted(self.accepted)))
        live = id_ not in self.completed | self.dead | self.cancelled
        assert self.ledger.cancel([id_], "test") == ([id_] if live else [])
        if live:
            self.cancelled.add(id_)
            self.holder.pop(id_, None)

    @rule(state=st.sampled_from(["active", "paused"]))
    def pause_or_resume(self, state):
        self.ledger.set_flow_state("f", state, "test")

    # -- what must hold ----------------------------------------------------------------------------------

    @invariant()
    def nothing_is_lost_and_nothing_is_twice(self):
        if not hasattr(self, "accepted"):
            return
        live = [row[0] for row in sql(self.ledger, "SELECT id FROM {s}processing_queue")]
        settled = [row[0] for row in sql(self.ledger, "SELECT id FROM {s}processing_history")]
        assert sorted(live + settled) == sorted(self.accepted)

    @invariant()
    def the_ledger_agrees_on_what_became_of_each(self):
        if not hasattr(self, "accepted"):
            return
        states = dict(sql(self.ledger, "SELECT id, status FROM {s}processing_history"))
        expected = (
            dict.fromkeys(self.completed, "completed")
            | dict.fromkeys(self.dead, "dead")
            | dict.fromkeys(self.cancelled, "cancelled")
        )
        assert states == expected
        held = dict(sql(self.ledger, "SELECT id, token FROM {s}processing_queue WHERE holder IS NOT NULL"))
        assert held == {id_: token for id_, (_worker, token) in self.holder.items()}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_promises_hold_in_any_order(kind, tmp_path, request, monkeypatch):
    server = request.getfixturevalue("postgres").url if kind == "postgresql" else None
    with Ledger.open(make_settings(kind, tmp_path, server)) as ledger:
        ledger.schema.migrate()
        Protocol.ledger, Protocol.clock = ledger, LedgerClock(ledger, monkeypatch)
        run_state_machine_as_test(
            Protocol,
            settings=settings(
                max_examples=int(os.environ.get("ROWLOCK_PROTOCOL_EXAMPLES", "60")),
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
