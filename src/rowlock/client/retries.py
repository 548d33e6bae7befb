"""Whether a request is made again, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from rowlock.client.answers import problem_of, raise_for
from rowlock.client.steps import Answer, Call, Lost, Pause, Request, Send
from rowlock.errors import ApiUnavailable, OutcomeUnknown
from rowlock.queue.retry import Backoff
from rowlock.server.meanings import MEANINGS, uri

if TYPE_CHECKING:
    from rowlock.server.meanings import Meaning

_AGAIN = (429, 502, 503, 504)
# These say that nothing was done; a gateway's 502 or 504 does not.
_NOT_DONE = (429, 503)
_BACKOFF = Backoff(base=0.2, cap=5.0)
# Whoever is asked to come back later than that decides for himself.
_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Retries:
    """`attempts` in all, with a pause between them: what the server asks for, or backoff with jitter."""

    attempts: int

    def ask(self, request: Request, *, stream: bool = False, also: tuple[int, ...] = ()) -> Call[Answer]:
        """→ the answer, or the error that it tells of; a status in `also` is none."""
        attempt = 1
        while True:
            try:
                answer: Answer = yield Send(request, stream)
            except Lost as lost:
                if lost.sent and not request.repeatable:
                    raise ApiUnavailable(
                        f"{request.method} {request.url}: {lost}. It may have been done: look before you ask again."
                    ) from lost
                pause = self.after(attempt, lost, request)
            else:
                wanted = _pause(answer, attempt)
                if attempt >= self.attempts or wanted > _LONGEST_PAUSE or not _again(request, answer):
                    if answer.status not in also:
                        raise_for(answer)
                    return answer
                pause = wanted
            yield Pause(pause)
            attempt += 1

    def after(self, attempt: int, lost: Lost, request: Request) -> float:
        """How long to wait after a loss, or that it was the last."""
        if attempt >= self.attempts:
            times = "once" if attempt == 1 else f"{attempt} times"
            raise ApiUnavailable(f"{request.method} {request.url} was tried {times}: {lost}.") from lost
        return _BACKOFF.delay(attempt)


def _again(request: Request, answer: Answer) -> bool:
    if answer.status not in _AGAIN:
        return False
    meaning = _meaning(answer)
    if meaning is None or meaning.retry:
        return request.repeatable or answer.status in _NOT_DONE
    return meaning.error is OutcomeUnknown and request.repeatable


def _meaning(answer: Answer) -> Meaning | None:
    problem = problem_of(answer)
    return next((one for one in MEANINGS if problem is not None and problem.type == uri(one.kind)), None)


def _pause(answer: Answer, attempt: int) -> float:
    return max(retry_after(answer) or 0.0, _BACKOFF.delay(attempt))


def retry_after(answer: Answer) -> float | None:
    """Seconds, from a number or a date."""
    given = answer.headers.get("retry-after", "")
    if given.isascii() and given.isdigit():
        return float(given)
    try:
        at = parsedate_to_datetime(given)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
