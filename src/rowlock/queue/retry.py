"""When a record that failed is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from rowlock.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter: a wait between 0 and base · 2^(attempt-1), at most cap, in seconds.

    Full jitter spreads records that failed together, so that they do not come back together.
    """

    base: float = 1.0
    cap: float = 300.0

    def __post_init__(self) -> None:
        if self.base < 0 or self.cap < self.base:
            raise ConfigurationError(f"Backoff(base={self.base}, cap={self.cap}): needs 0 <= base <= cap.")

    def ceiling(self, attempt: int) -> float:
        """The longest wait after this attempt."""
        return min(self.cap, self.base * 2.0 ** min(attempt - 1, 64))

    def delay(self, attempt: int) -> float:
        return random.uniform(0, self.ceiling(attempt))
