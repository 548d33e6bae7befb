"""What a call may want from the world. Calls are generators that yield these steps and know nothing of sockets:
the plain client and the async one walk them, each in its own way, and neither has a rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, whole."""

    method: str
    url: str
    # Not shown: the token is among them.
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    # False if doing it twice would be something else than doing it once.
    repeatable: bool = True
    # Longest silence, in seconds.
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Of a stream that succeeded, the content is still to be read."""

    status: int
    headers: dict[str, str]  # names in lower case
    content: bytes = field(default=b"", repr=False)


class Lost(Exception):
    """Thrown into a call: there is no answer, or it broke off. `sent` is False if the server cannot have seen the request."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Send:
    """→ the Answer. With `stream`, a 200 leaves its content to be read."""

    request: Request
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """→ the next bytes of the stream; none at its end."""


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Do:
    """→ what the work returns; it may block, so an event loop gives it to a thread."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Give:
    """Hands one item to whoever iterates."""

    item: Any


Step = Send | Read | Pause | Do | Give
Call = Generator[Step, Any, Result]


class Course(Generic[Result]):
    """A call on its way: `step` is what it wants next; None when it has ended, with its `result`."""

    step: Step | None
    result: Result

    def __init__(self, call: Call[Result]) -> None:
        self._call = call
        self.go_on(None)

    def go_on(self, value: Any) -> None:
        self._advance(lambda: self._call.send(value))

    def lose(self, lost: Lost) -> None:
        self._advance(lambda: self._call.throw(lost))

    def close(self) -> None:
        self._call.close()

    def _advance(self, move: Callable[[], Step]) -> None:
        try:
            self.step = move()
        except StopIteration as end:
            self.step, self.result = None, end.value
