"""SIGTERM and SIGINT: whatever runs until then leaves in good order."""

from __future__ import annotations

import logging
import signal
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger("rowlock.signals")

_LOOK_SECONDS = 0.5


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


class UntilSignal(ABC):
    """Something that runs in the background: until a signal with `run`, or for as long as a `with` block."""

    @abstractmethod
    def start(self) -> None:
        """Begins; returns at once."""

    @abstractmethod
    def stop(self) -> None:
        """Ends in good order. A second call leaves now."""

    @abstractmethod
    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end; raises what ended it, if that was an error."""

    def run(self) -> None:
        """Works until SIGTERM or SIGINT, or until it ends by itself, then leaves in good order."""
        with on_signals(self._on_signal):
            self.start()
            while not self.join(_LOOK_SECONDS):
                pass

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()

    def _on_signal(self, number: int) -> None:
        logger.info("%s: finishing; once more means: leave now", signal.Signals(number).name)
        self.stop()
