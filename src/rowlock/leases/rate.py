"""A rate: so many starts in a second, a minute, an hour or a day."""

from __future__ import annotations

import math
import re

from rowlock.errors import InvalidInput

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_RATE = re.compile(r"(\d{1,9})\s*/\s*([smhd])")
_FASTEST = 10_000  # starts a second
_MOST_BURST = 10_000


def interval_of(limit: str, rate: str) -> float:
    """The seconds between two starts, rounded up to what every ledger's clock can tell."""
    found = _RATE.fullmatch(rate.strip()) if isinstance(rate, str) else None
    if found is None or int(found[1]) == 0:
        raise InvalidInput(
            f"limit {limit!r}: rate={rate!r} cannot be read. Say how many in which time: '10/s', '600/m', '5000/h' or '1/d'."
        )
    count, period = int(found[1]), _UNITS[found[2]]
    if count / period > _FASTEST:
        raise InvalidInput(
            f"limit {limit!r}: rate={rate!r} is more than {_FASTEST:,} a second, which no ledger can count."
        )
    return math.ceil(period / count * 1e6) / 1e6


def checked_burst(limit: str, burst: int, rate: str | None) -> int:
    if isinstance(burst, bool) or not isinstance(burst, int) or not 1 <= burst <= _MOST_BURST:
        raise InvalidInput(
            f"limit {limit!r}: burst={burst!r} is outside 1 … {_MOST_BURST:,}. It is how many may start at once "
            "after an idle time."
        )
    if burst > 1 and rate is None:
        raise InvalidInput(f"limit {limit!r}: burst={burst} says nothing without a rate.")
    return burst
