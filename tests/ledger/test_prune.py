"""Retention: old history goes in small batches, with its keys and attempts; dead letters stay unless asked for."""

from __future__ import annotations

import pytest

from rowlock.leases.instance import Instance
from rowlock.ledger.lock_table import Wanted
from rowlock.ledger.rows import Completion, Failure
from rowlock.queue.maintenance import Maintenance
from tests.support.ledgers import add_flow, claim, put, register, sql

DAY = 86400


@pytest.fixture
def history(ledger, ledger_clock):
    """Ten completed and one dead, forty days ago."""
    add_flow(ledger)
    me = register(ledger)
    put(ledger, *(f"k{n}" for n in range(11)))
    *good, bad = claim(ledger, me, limit=11)
    ledger.exchange(me, [Completion(row.id, row.token, "1") for row in good], [])
    ledger.fail(me, [Failure(bad.id, bad.token, True, 0, "r", "failed", "E", "m", None, "fp")])
    ledger_clock.advance(40 * DAY)
    return ledger


def counts(ledger):
    return [
        sql(ledger, f"SELECT count(*) FROM {{s}}{table}")[0][0]
        for table in ("processing_history", "record_keys", "record_attempts")
    ]


def test_what_is_young_stays(history):
    assert history.prune(41 * DAY, dead_too=True, limit=100) == 0


def test_a_batch_is_small_and_takes_keys_and_attempts_along(history):
    assert history.prune(30 * DAY, dead_too=False, limit=4) == 4
    assert counts(history) == [7, 7, 1]
    assert history.prune(30 * DAY, dead_too=False, limit=100) == 6
    assert counts(history) == [1, 1, 1]


def test_dead_letters_go_only_when_asked_for(history):
    assert history.prune(30 * DAY, dead_too=True, limit=100) == 11
    assert counts(history) == [0, 0, 0]


def test_one_elected_instance_prunes(history):
    instance = Instance(history.settings)
    instance.id = register(history)
    history.locks.create("rowlock.pruner", 1)
    rival = history.locks.take(Wanted("rowlock.pruner", 1, instance.id + 1, 1, 60, None))
    maintenance = Maintenance(history, instance, lambda: None)
    maintenance.prune()
    assert counts(history)[0] == 11
    history.locks.release(rival)
    maintenance.prune()
    assert counts(history)[0] == 1
    instance.keeper.close()
    instance._ledger.close()
