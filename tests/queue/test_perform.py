"""What a handler did, as an outcome."""

from __future__ import annotations

import pytest

from rowlock import LeaseLost
from rowlock.ledger.rows import Held
from rowlock.queue.flow import Flow
from rowlock.queue.perform import perform
from rowlock.queue.record import Holder, Record


def record(seconds_left):
    holder = Holder(ledger=None, instance_id=1, seconds_left=lambda: seconds_left, settle=print)
    return Record(Held(7, 1, "f", "k", "1", 1, 0, 0, 0.0), holder)


def check(one):
    one.check()


def lose_another(_one):
    raise LeaseLost("of something else")


@pytest.mark.parametrize(
    ("handler", "seconds_left", "kind"),
    [
        (check, 0.0, "postponed"),  # the lease ended by the local clock: handed back, the attempt not spent
        (lose_another, 10.0, "failed"),  # another lease was lost, this record is still ours
    ],
)
def test_a_lost_lease_is_not_the_handlers_fault(handler, seconds_left, kind):
    [outcome] = perform(Flow("f", handler=handler), [record(seconds_left)])
    assert outcome.kind == kind


def test_a_record_that_the_ledger_took_away_is_lost():
    one = record(10.0)
    one._state = "lost"
    [outcome] = perform(Flow("f", handler=check), [one])
    assert outcome.kind == "lost"
