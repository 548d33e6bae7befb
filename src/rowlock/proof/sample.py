"""The sample: which records a run is made of.

A number and a seed say everything about a record, so that whoever checks knows what must have become of it without
asking anybody.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of a thousand records. What is left over is fast.
_SHARES = {"plain": 550, "slow": 60, "flaky": 30, "elsewhere": 40, "async": 12, "doomed": 6, "hanging": 2}
_FAST = "fast"
POISON = "poison"
# Each of them kills its process several times, together with everything that runs there.
_POISON_EVERY = 20_000

# Flow → which table its effect is in; flows that are not here have none but their result.
LEDGER_EFFECTS = ("fast", "slow", "flaky", "async", "doomed", "hanging")
SECOND_EFFECTS = ("elsewhere",)
FLOWS = (_FAST, *_SHARES, POISON)


class Sample(NamedTuple):
    """One record: its flow, its key, and a number that its handler draws its length from."""

    flow: str
    key: str
    draw: int

    @property
    def fate(self) -> str:
        """How it must end."""
        return "dead" if self.flow == POISON else "completed"

    @property
    def effects(self) -> str | None:
        """Where its effect must be."""
        if self.flow in LEDGER_EFFECTS:
            return "ledger"
        return "second" if self.flow in SECOND_EFFECTS else None


def sample(seed: int, number: int) -> Sample:
    """The record of this number, the same every time."""
    digest = hashlib.blake2b(f"{seed}:{number}".encode(), digest_size=8).digest()
    draw = int.from_bytes(digest[:4], "big")
    if number % _POISON_EVERY == _POISON_EVERY // 4:
        return Sample(POISON, str(number), draw)
    place = int.from_bytes(digest[4:], "big") % 1000
    for flow, share in _SHARES.items():
        if place < share:
            return Sample(flow, str(number), draw)
        place -= share
    return Sample(_FAST, str(number), draw)


def samples(seed: int, first: int, end: int) -> Iterator[Sample]:
    for number in range(first, end):
        yield sample(seed, number)
