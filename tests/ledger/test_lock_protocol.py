"""Named leases as a state machine: whatever order things happen in, one holder a slot, and tokens only rise.

Instances take, renew, give back and write under every token that was ever given out, stale ones too; some are silent
until their time is up, some replies are lost and asked for again. The model knows which holding of each slot counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count, pairwise
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

from rowlock.ledger.lock_table import NO_TICKET, HeldSlot, Wanted
from tests.support.ledgers import register, sql
from tests.support.searching import search

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger
    from rowlock.ledger.ledger_clock import LedgerClock

TTL, PATIENCE = 30.0, 20.0
SLOTS = {"one": 1, "three": 3}
NAMES = st.sampled_from(sorted(SLOTS))
INSTANCES = st.integers(0, 2)
TABLES = ("service_locks", "lock_waiters", "lock_holdings")


@dataclass
class Place:
    """A slot as the model has it."""

    token: int = 0  # the highest ever given out
    held: HeldSlot | None = None
    request: int = 0
    holder: int = 0
    until: float = 0.0


@dataclass
class Line:
    """Who waits for a name: ticket → when its place is lost."""

    places: dict[int, float] = field(default_factory=dict)

    def alive(self, now: float) -> list[int]:
        return sorted(ticket for ticket, until in self.places.items() if until > now)


class LockProtocol(RuleBasedStateMachine):
    """Set `ledger` and `clock` before use."""

    ledger: Ledger
    clock: LedgerClock

    @initialize()
    def begin(self):
        for table in TABLES:
            sql(self.ledger, f"DELETE FROM {{s}}{table}")
        for name, slots in SLOTS.items():
            self.ledger.locks.create(name, slots)
        self.instances = [register(self.ledger) for _ in range(3)]
        self.places = {(name, slot): Place() for name, slots in SLOTS.items() for slot in range(slots)}
        self.lines = {name: Line() for name in SLOTS}
        self.given: list[HeldSlot] = []  # every holding ever given out
        self.ended: dict[HeldSlot, tuple[int, str]] = {}  # what the history must say of it
        self.served: list[tuple[Wanted, int]] = []
        self.requests = count(1)
        self.numbers = count(1)
        self.now = 0.0  # whole steps of the clock; what real time passes between them is nothing beside them

    def counts(self, held: HeldSlot) -> bool:
        """Would the ledger accept what this holding does?"""
        place = self.places[held.name, held.slot]
        return place.held == held and place.until > self.now

    # -- taking ------------------------------------------------------------------------------------------------

    @rule(name=NAMES, who=INSTANCES, ttl=st.sampled_from([TTL / 2, TTL]))
    def take(self, name, who, ttl):
        self._take(Wanted(name, SLOTS[name], self.instances[who], next(self.requests), ttl, None), NO_TICKET)

    @precondition(lambda self: any(line.places for line in self.lines.values()))
    @rule(data=st.data(), who=INSTANCES)
    def take_in_turn(self, data, who):
        name, ticket = data.draw(
            st.sampled_from([(name, ticket) for name, line in self.lines.items() for ticket in line.places])
        )
        self._take(Wanted(name, SLOTS[name], self.instances[who], next(self.requests), TTL, None), ticket)

    def _take(self, wanted: Wanted, ticket: int) -> None:
        name, now = wanted.name, self.now
        free = [
            slot
            for (other, slot), place in self.places.items()
            if other == name and (place.held is None or place.until <= now)
        ]
        first = not any(before < ticket for before in self.lines[name].alive(now))
        held = self.ledger.locks.take(wanted, ticket)
        assert (held is not None) == bool(free and first), f"{held} of {free}, first in line: {first}"
        if held is None:
            return
        place = self.places[name, held.slot]
        assert held.slot in free, "taken while somebody holds it"
        assert held.token > place.token, "the token did not rise"
        if place.held is not None:
            self.ended[place.held] = (place.holder, "expired")
        self.places[name, held.slot] = Place(
            held.token, held, wanted.request, wanted.holder, now + wanted.ttl
        )
        self.lines[name].places.pop(ticket, None)
        self.given.append(held)
        self.served.append((wanted, ticket))

    @precondition(lambda self: self.served)
    @rule(data=st.data())
    def the_reply_to_a_take_was_lost(self, data):
        """The same request again: it finds its slot if that is still its own, and is a new try otherwise."""
        wanted, ticket = data.draw(st.sampled_from(self.served))
        for place in self.places.values():
            if place.held is not None and place.request == wanted.request:
                assert self.ledger.locks.take(wanted, ticket) == place.held
                place.until = self.now + wanted.ttl
                place.holder = wanted.holder
                return
        self._take(wanted, ticket)

    # -- holding -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.given)
    @rule(data=st.data(), who=INSTANCES)
    def renew(self, data, who):
        """One statement for any of them, stale ones among them."""
        some = data.draw(st.lists(st.sampled_from(self.given), min_size=1, max_size=4, unique=True))
        some = list({(one.name, one.slot): one for one in some}.values())
        ours = {(one.name, one.slot) for one in some if self.counts(one)}
        assert self.ledger.locks.renew(self.instances[who], some) == ours
        ttls = {
            (row[0], row[1]): row[2]
            for row in sql(self.ledger, "SELECT lock_name, slot, ttl_seconds FROM {s}service_locks")
        }
        for key in ours:
            self.places[key].until = self.now + ttls[key]
            self.places[key].holder = self.instances[who]

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def write(self, data):
        """A fenced transaction."""
        held = data.draw(st.sampled_from(self.given))
        with self.ledger.transaction() as transaction:
            params = {"commit": next(self.numbers), "ttl_ms": 30000, **held._asdict()}
            accepted = transaction.one("lock_fence", params) is not None
        assert accepted == self.counts(held), f"{held}: {accepted}"

    # -- ending ------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def release(self, data):
        held = data.draw(st.sampled_from(self.given))
        place = self.places[held.name, held.slot]
        ended = self.ledger.locks.release(held)
        if place.held != held:
            # Nothing happens; one whose reply was lost learns on PostgreSQL what it did the first time.
            was = self.ended[held][1] if self.ledger.dialect == "postgresql" else None
            assert ended == ("released" if was == "released" else None)
            return
        assert ended == ("released" if place.until > self.now else "expired")
        self.ended[held] = (place.holder, ended)
        place.held = None

    @rule(name=NAMES, data=st.data())
    def force(self, name, data):
        slot = data.draw(st.integers(0, SLOTS[name] - 1))
        place = self.places[name, slot]
        forced = self.ledger.locks.force(name, slot, "test")
        assert (forced is not None) == (place.held is not None)
        if place.held is not None:
            assert (forced.token, forced.holder) == (place.held.token, place.holder)
            self.ended[place.held] = (place.holder, "forced" if place.until > self.now else "expired")
            place.held = None

    @rule(seconds=st.sampled_from([1.0, TTL / 2 + 1, TTL + 1]))
    def time_passes(self, seconds):
        """Whoever is not renewed meanwhile has lost its lease, and may go on acting: a zombie."""
        self.clock.advance(seconds)
        self.now += seconds

    # -- the line ----------------------------------------------------------------------------------------------

    @rule(name=NAMES, who=INSTANCES)
    def queue(self, name, who):
        line = self.lines[name]
        ticket = self.ledger.locks.queue(name, self.instances[who], PATIENCE)
        assert ticket > max(line.places, default=0)
        line.places = {known: line.places[known] for known in line.alive(self.now)}
        line.places[ticket] = self.now + PATIENCE

    @precondition(lambda self: any(line.places for line in self.lines.values()))
    @rule(data=st.data())
    def keep_the_place(self, data):
        line = data.draw(st.sampled_from([line for line in self.lines.values() if line.places]))
        ticket = data.draw(st.sampled_from(sorted(line.places)))
        kept = bool(self.ledger.run("lock_wait", ticket=ticket, patience=PATIENCE))
        assert kept == (line.places[ticket] > self.now)
        if kept:
            line.places[ticket] = self.now + PATIENCE

    @precondition(lambda self: any(line.places for line in self.lines.values()))
    @rule(data=st.data())
    def leave(self, data):
        line = data.draw(st.sampled_from([line for line in self.lines.values() if line.places]))
        ticket = data.draw(st.sampled_from(sorted(line.places)))
        self.ledger.locks.leave(ticket)
        del line.places[ticket]

    # -- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def the_ledger_knows_the_holders_of_the_model(self):
        if not hasattr(self, "places"):
            return
        query = "SELECT lock_name, slot, token, holder FROM {s}service_locks"
        found = {(name, slot): (token, holder) for name, slot, token, holder in sql(self.ledger, query)}
        for key, place in self.places.items():
            token, holder = found[key]
            if place.held is None:
                assert holder is None
                assert token > place.token or place.token == 0, "given back, and the token did not rise"
            else:
                assert (token, holder) == (place.held.token, place.holder)

    @invariant()
    def the_history_is_the_models_and_never_overlaps(self):
        if not hasattr(self, "places"):
            return
        query = "SELECT lock_name, slot, token, holder, ended, acquired_at, ended_at FROM {s}lock_holdings"
        rows = sql(self.ledger, query)
        assert {HeldSlot(*row[:3]): (row[3], row[4]) for row in rows} == self.ended
        check_history(self.ledger)


def check_history(ledger) -> int:
    """Of one slot: tokens rise, and each holding ended before the next began, the present one too. How many there were."""
    query = (
        "SELECT lock_name, slot, token, acquired_at, ended_at FROM {s}lock_holdings UNION ALL "
        "SELECT lock_name, slot, token, acquired_at, expires_at FROM {s}service_locks WHERE holder IS NOT NULL"
    )
    rows = sorted(sql(ledger, query))
    for (name, slot, token, began, ended), following in pairwise(rows):
        assert began <= ended, f"{name}/{slot}: token {token} ended before it began"
        if (name, slot) == following[:2]:
            assert token < following[2], f"{name}/{slot}: token {token} twice"
            assert ended <= following[3], f"{name}/{slot}: {token} and {following[2]} overlap"
    return len(rows)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_leases_keep_their_promises_in_any_order(kind, tmp_path, request):
    search(LockProtocol, kind, tmp_path, request)
