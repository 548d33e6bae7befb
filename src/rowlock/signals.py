"""SIGTERM and SIGINT, for as long as something runs that must leave in good order."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def on_signals(tell: Callable[[int], None]) -> Iterator[None]:
    """Calls `tell` with the number of each; afterwards they mean what they meant before."""
    previous = {
        number: signal.signal(number, lambda number, _frame: tell(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
