"""Instances: registered, alive, replaced; nothing they counted is lost on the way."""

from __future__ import annotations

from rowlock.leases.instance import Counters, Instance
from tests.support.ledgers import sql


def test_what_is_counted_while_it_is_written_is_kept():
    counters = Counters()
    counters.add(completed=3, stale_refused=1)
    written = counters.read()
    counters.add(stale_refused=2)
    counters.forget(written)
    assert counters.read() == {"completed": 0, "failed": 0, "stale_refused": 2, "takeovers": 0}


def test_a_replaced_instance_leaves_its_counters_behind(ledger):
    instance = Instance(ledger.settings)
    instance.start()
    try:
        first = instance.id
        instance.counters.add(completed=5)
        instance.forfeit("test")
        instance.beat()
        assert instance.id > first
        assert instance.alive
        instance.counters.add(completed=2)
    finally:
        instance.stop()
    rows = sql(ledger, "SELECT id, completed, state FROM {s}service_instances ORDER BY id")
    assert rows[0] == (first, 5, "dead")
    assert rows[-1][1:] == (2, "stopped")
    assert sum(row[1] for row in rows) == 7


def test_an_id_is_new_at_every_start(ledger):
    seen = set()
    for _ in range(3):
        instance = Instance(ledger.settings, name="the same name")
        instance.start()
        seen.add(instance.id)
        instance.stop()
    assert len(seen) == 3


def test_a_lost_lease_is_told_once(ledger):
    told = []
    instance = Instance(ledger.settings)
    instance.on_lost(told.append)
    instance._register()  # without its thread, which would begin anew between the two
    instance.forfeit("first")
    instance.forfeit("second")
    instance._ledger.close()
    assert told == ["first"]
