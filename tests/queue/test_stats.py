"""A few waits of a claim stand for all of them; every end is counted."""

from __future__ import annotations

import pytest

from rowlock.leases.instance import Instance
from rowlock.ledger.rows import Held
from rowlock.queue.stats import Stats
from tests.leases.test_tally import totals


@pytest.fixture
def instance(ledger, settings):
    instance = Instance(settings)
    instance.start()
    yield instance
    instance.stop()


@pytest.mark.parametrize("many", [1, 16, 17, 100])
def test_waits_are_those_of_the_whole_claim(instance, ledger, many):
    now = instance.ledger_time
    held = [Held(n, 1, "score", str(n), "1", 1, 0, 0, now - 7) for n in range(many)]
    Stats(instance).claimed("score", held)
    instance.tally.write(ledger)
    found = totals(ledger)
    assert found["claims", "score", ""] == many
    assert found["queue_wait", "score", "10.0"] == pytest.approx(many)
    assert found["queue_wait", "score", "sum"] == pytest.approx(7 * many, rel=0.01)


def test_what_is_tried_again_has_not_waited_in_the_queue(instance, ledger):
    Stats(instance).claimed("score", [Held(1, 3, "score", "1", "1", 2, 0, 0, instance.ledger_time - 7)])
    instance.tally.write(ledger)
    assert ("queue_wait", "score", "10.0") not in totals(ledger)
