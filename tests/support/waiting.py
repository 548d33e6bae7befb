"""Waiting for something that will happen, with a limit that only a bug reaches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 30.0


def eventually(condition: Callable[[], object], what: str = "it") -> None:
    """Returns as soon as the condition holds."""
    give_up = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < give_up, f"{what} did not happen within {LIMIT:g} s"
        time.sleep(0.01)
