"""Marks at which a test may kill the process: see `crash_points` in rowlock.integrations.pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_listener: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """Says: a crash here would be interesting. It does nothing, except in a test with `crash_points`.

    Put one before and after an effect that Rowlock cannot see, such as an HTTP call or a file.
    """
    if _listener is not None:
        _listener(name)


def listen(tell: Callable[[str], None]) -> None:
    """Calls this at every mark from now on, until the process ends."""
    global _listener  # noqa: PLW0603 - one process has one killer
    _listener = tell
