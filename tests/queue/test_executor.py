"""Slots: a turn is ended once, by the thread or by whoever gives it up."""

from __future__ import annotations

from queue import SimpleQueue
from types import SimpleNamespace

from rowlock.queue.executor import Slot, Turn


def test_giving_up_a_turn_that_has_just_ended_does_not_take_the_next_one():
    slot = Slot(SimpleNamespace(flow=SimpleNamespace(name="f")), SimpleQueue())
    old, new = Turn(["old"]), Turn(["new"])
    slot._turns.append(old)
    seen = slot.turn
    assert slot._end(old)  # the thread finishes it …
    slot._turns.append(new)  # … and begins another
    assert not slot.disown(seen)
    assert slot.turn is new
    assert slot.disown(new)
    assert not slot._end(new)
