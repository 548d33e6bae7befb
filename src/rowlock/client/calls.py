"""Every call of a client, as steps: both clients walk these."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rowlock import clock
from rowlock.client.answers import View, parse
from rowlock.client.event import Messages
from rowlock.client.retries import Retries, retry_after
from rowlock.client.steps import Answer, Call, Give, Lost, Pause, Read
from rowlock.errors import ApiError, JobNotEnded, NotFound, Refused
from rowlock.jobs.job import OPEN
from rowlock.server.job_views import (
    InputPage,
    InputView,
    JobAccepted,
    JobPage,
    JobPlan,
    JobView,
    Redriven,
)
from rowlock.server.views import Ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlock.client.address import Address

_KEY = re.compile(r"[\w-]+", re.ASCII)
# The server shows a sign of life every 15 seconds.
_SILENCE_SECONDS = 45.0
# The first looks at a job come quickly, for the short ones; then as often as the server likes.
_FIRST_LOOK = 0.1
_LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Calls:
    address: Address
    retries: Retries

    def ready(self) -> Call[Ready]:
        """Once: whoever asks wants to know how it is now."""
        answer = yield from Retries(1).ask(self.address.request("GET", "/health/ready"))
        return parse(answer, Ready)

    # -- submit ----------------------------------------------------------------------------------------------

    def submit(self, order: Mapping[str, Any], idempotency_key: str | None) -> Call[JobAccepted]:
        # With a key, an attempt whose answer was lost and the one after it are one job.
        headers = {"Idempotency-Key": uuid4().hex if idempotency_key is None else idempotency_key}
        return parse((yield from self._order(order, headers=headers)), JobAccepted)

    def validate(self, order: Mapping[str, Any]) -> Call[JobPlan]:
        return parse((yield from self._order(order, query={"validate_only": "true"})), JobPlan)

    def _order(self, order: Mapping[str, Any], **more: Any) -> Call[Answer]:
        return (yield from self.retries.ask(self.address.request("POST", "/jobs", body=order, **more)))

    # -- look ------------------------------------------------------------------------------------------------

    def job(self, key: str) -> Call[JobView]:
        return (yield from self._get(job_path(key), JobView))

    def jobs(self, *, status: str | None, exporter: str | None, page_size: int) -> Call[None]:
        query = {"status": status, "exporter": exporter, "limit": page_size}
        address: str | None = "/jobs"
        while address is not None:
            page = yield from self._get(address, JobPage, query)
            for job in page.jobs:
                yield Give(job)
            address, query = _next(page.next), {}

    def inputs(self, key: str, *, status: str | None, page_size: int) -> Call[None]:
        query = {"status": status, "limit": page_size}
        address: str | None = f"{job_path(key)}/inputs"
        while address is not None:
            page = yield from self._get(address, InputPage, query)
            for one in page.inputs:
                yield Give(one)
            address, query = _next(page.next), {}

    def input(self, key: str, input_id: int) -> Call[InputView]:
        # A page begins after its cursor, and ids are in order.
        query = {"cursor": max(0, input_id - 1), "limit": 1}
        page = yield from self._get(f"{job_path(key)}/inputs", InputPage, query)
        for one in page.inputs:
            if one.input_id == input_id:
                return one
        raise NotFound(f"Job {key} has no input {input_id}.")

    def _get(self, path: str, view: type[View], query: dict[str, Any] | None = None) -> Call[View]:
        answer = yield from self.retries.ask(self.address.request("GET", path, query=query))
        return parse(answer, view)

    # -- change ----------------------------------------------------------------------------------------------

    def cancel(self, key: str) -> Call[JobView]:
        request = self.address.request("POST", f"{job_path(key)}:cancel")
        try:
            return parse((yield from self.retries.ask(request)), JobView)
        except Refused:
            # It had ended before; or the first attempt cancelled it, and only its answer was lost.
            job = yield from self.job(key)
            if job.status != "CANCELLED":
                raise
            return job

    def redrive(self, key: str, order: Mapping[str, Any]) -> Call[Redriven]:
        # Not repeatable: what it drove may be dead again by now.
        request = self.address.request("POST", f"{job_path(key)}:redrive", body=order, repeatable=False)
        return parse((yield from self.retries.ask(request)), Redriven)

    # -- follow ----------------------------------------------------------------------------------------------

    def wait(self, key: str, timeout: float | None) -> Call[JobView]:
        give_up = None if timeout is None else clock.monotonic() + timeout
        seen: dict[str, str] = {}
        look = _FIRST_LOOK
        while True:
            answer = yield from self.retries.ask(self.address.request("GET", job_path(key), headers=seen))
            if answer.status != 304:
                job = parse(answer, JobView)
                if job.status not in OPEN:
                    return job
                seen = {"If-None-Match": answer.headers.get("etag", '""')}
            left = None if give_up is None else give_up - clock.monotonic()
            if left is not None and left <= 0:
                raise JobNotEnded(
                    f"Job {key} is {job.status} after {timeout:g} s, with {job.done:,} of {job.total:,} inputs done. It goes "
                    "on: wait again, or cancel it."
                )
            look = min(look * 1.5, retry_after(answer) or _LOOK_SECONDS)
            yield Pause(look if left is None else min(look, left))

    def events(self, key: str) -> Call[None]:
        """A stream that ends may only be a server that does: the one that ends because of the job is followed by a 204."""
        last: int | None = None
        told: JobView | None = None
        attempt = 0
        while True:
            attempt += 1
            messages = Messages()
            headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
            if last is not None:
                headers["Last-Event-ID"] = str(last)
            silence = max(self.address.timeout, _SILENCE_SECONDS)
            request = self.address.request("GET", f"{job_path(key)}/events", headers=headers, timeout=silence)
            answer = yield from self.retries.ask(request, stream=True)
            if answer.status == 204:
                return
            lost: Lost | None = None
            try:
                while data := (yield Read()):
                    for event in messages.feed(data):
                        attempt = 0
                        last = last if event.id is None else event.id
                        # Whoever comes back is told the counts again.
                        if event.job is None or event.job != told:
                            told = event.job or told
                            yield Give(event)
            except Lost as broken:
                lost = broken
            if lost is not None or attempt:
                lost = lost or Lost("the stream ended before anything was told", sent=True)
                attempt = max(1, attempt)
                yield Pause(self.retries.after(attempt, lost, request))


def job_path(key: str) -> str:
    """No name of a job leads anywhere else."""
    if not _KEY.fullmatch(key):
        raise NotFound(f"There is no job {key!r}.")
    return f"/jobs/{key}"


def _next(address: str | None) -> str | None:
    """Only ever a path of the same server: the token goes with it."""
    if address is not None and not address.startswith("/"):
        raise ApiError("The server's next page is somewhere else; it was not asked.", status=200)
    return address
