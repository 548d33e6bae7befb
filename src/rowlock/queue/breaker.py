"""A breaker: when a flow fails too often, it pauses itself, tries a few records, and goes on or waits for longer."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Breaker:
    """`@app.flow("fetch", breaker=Breaker(failures=0.5, of=20, window=60))`.

    Attempts that raised, timed out or killed their process count as failures, over the whole fleet. A record that was
    rejected (`Reject`) or postponed (`RetryLater`) counts neither way.

    Args:
        failures: the part of all attempts, above 0 and up to 1, that must have failed.
        of: so few attempts within the window are no ground for anything.
        window: seconds.
        pause: seconds until a few records are tried; each try that fails doubles it.
        longest_pause: seconds that it grows to at most.
        probes: records that are tried, in the whole fleet.

    """

    failures: float = 0.5
    of: int = 20
    window: float = 60.0
    pause: float = 30.0
    longest_pause: float = 600.0
    probes: int = 3

    def __post_init__(self) -> None:
        _require(0 < self.failures <= 1, f"failures={self.failures!r} is a part of all, above 0 and up to 1")
        _require(self.of >= 1, f"of={self.of!r} must be at least 1")
        _require(1 <= self.window <= 86400, f"window={self.window!r} s is outside 1 … 86400")
        _require(0 < self.pause <= 86400, f"pause={self.pause!r} s is outside 0 … 86400")
        _require(
            self.pause <= self.longest_pause <= 86400,
            f"longest_pause={self.longest_pause!r} s is shorter than the pause, or longer than a day",
        )
        _require(1 <= self.probes <= 1000, f"probes={self.probes!r} is outside 1 … 1000")

    def trips(self, attempts: int, failures: int) -> bool:
        return attempts >= self.of and self.fails(attempts, failures)

    def fails(self, attempts: int, failures: int) -> bool:
        return failures >= self.failures * attempts


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigurationError(f"Breaker: {message}.")
