"""The plain client."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx2

from rowlock.client.address import Address
from rowlock.client.calls import Calls
from rowlock.client.download import download
from rowlock.client.order import Redrivable, job_order, redrive_order
from rowlock.client.retries import Retries
from rowlock.client.steps import Answer, Call, Course, Do, Give, Lost, Pause, Read, Send, Step
from rowlock.client.wire import answer_of, lost_of, request_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from os import PathLike

    from rowlock.client.event import Event
    from rowlock.jobs.job import InputStatus, JobStatus, Policy
    from rowlock.server.job_views import InputView, JobAccepted, JobPlan, JobView, Redriven
    from rowlock.server.views import Ready

Result = TypeVar("Result")


class Client:
    """A Rowlock server, from a plain program. Close it, or use it in a `with`; threads may share it.

    A request whose answer is lost, or is 429, 502, 503 or 504, is made again, where that cannot do anything twice.

    Args:
        url: the server's address, as in https://rowlock.example.
        token: what `rowlock tokens create` has shown; otherwise the variable ROWLOCK_TOKEN, if it is set.
        timeout: the longest silence in a request, in seconds.
        attempts: how often a request is made at most; 1 is never again.

    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, attempts: int = 5
    ) -> None:
        self._calls = Calls(Address.of(url, token, timeout), Retries(attempts))
        self._http = httpx2.Client(timeout=timeout, follow_redirects=False)

    def __repr__(self) -> str:
        return f"Client({self._calls.address.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    def ready(self) -> Ready:
        """How the server is now; an error if it cannot serve. Asked once."""
        return self._run(self._calls.ready())

    def submit(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        exporter: str | None = None,
        policy: Policy = "fail_fast",
        priority: int = 0,
        deadline: float | None = None,
        webhook_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> JobAccepted:
        """Makes one job of these inputs, or an error and nothing.

        Args:
            inputs: what the exporter needs to know for each file.
            exporter: may be left out where there is only one.
            policy: fail_fast (the first dead input ends the job) or continue.
            priority: 0 (normal) to 100 (first).
            deadline: seconds after which the job fails.
            webhook_url: is told about the end of the job.
            idempotency_key: the same key again is the same job. Without one, each call makes a key, so that its own
                attempts are one job; give one if your program may be killed and call again.

        """
        order = job_order(
            inputs,
            exporter=exporter,
            policy=policy,
            priority=priority,
            deadline=deadline,
            webhook_url=webhook_url,
        )
        return self._run(self._calls.submit(order, idempotency_key))

    def validate(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        exporter: str | None = None,
        policy: Policy = "fail_fast",
        priority: int = 0,
        deadline: float | None = None,
        webhook_url: str | None = None,
    ) -> JobPlan:
        """What `submit` would make, or its error; nothing is made."""
        order = job_order(
            inputs,
            exporter=exporter,
            policy=policy,
            priority=priority,
            deadline=deadline,
            webhook_url=webhook_url,
        )
        return self._run(self._calls.validate(order))

    def job(self, key: str) -> JobView:
        """A job with its counts, and its files when it has ended."""
        return self._run(self._calls.job(key))

    def jobs(
        self, *, status: JobStatus | None = None, exporter: str | None = None, page_size: int = 100
    ) -> Iterator[JobView]:
        """All jobs, newest first; pages are fetched as they are needed."""
        return self._walk(Course(self._calls.jobs(status=status, exporter=exporter, page_size=page_size)))

    def inputs(
        self, key: str, *, status: InputStatus | None = None, page_size: int = 1000
    ) -> Iterator[InputView]:
        """All inputs of a job, in the order in which they were given; pages are fetched as they are needed."""
        return self._walk(Course(self._calls.inputs(key, status=status, page_size=page_size)))

    def cancel(self, key: str) -> JobView:
        """Ends a job now: what waits is cancelled, and what runs is revoked. A job that is cancelled already stays so."""
        return self._run(self._calls.cancel(key))

    def redrive(
        self,
        key: str,
        input_ids: Sequence[int] | None = None,
        *,
        status: Redrivable | None = None,
        error_contains: str | None = None,
    ) -> Redriven:
        """Lets dead and cancelled inputs run again; the job is open again.

        It is not made again by itself when its answer is lost: look at the job first.

        Args:
            key: the job.
            input_ids: only these.
            status: only DLQ, or only CANCELLED.
            error_contains: only those whose error has this text in it.

        """
        return self._run(self._calls.redrive(key, redrive_order(input_ids, status, error_contains)))

    def events(self, key: str) -> Generator[Event, None, None]:
        """What happens to a job, each event once, until it has ended; its counts whenever they change."""
        return self._walk(Course(self._calls.events(key)))

    def wait(self, key: str, timeout: float | None = None) -> JobView:
        """The job when it has ended, however; `JobNotEnded` after so many seconds."""
        return self._run(self._calls.wait(key, timeout))

    def download(self, key: str, input_id: int, to: str | PathLike[str]) -> Path:
        """The file of an input, as this file or in this folder: whole and with its checksum right, or an error and no file."""
        return self._run(download(self._calls, key, input_id, Path(to)))

    # -- walking -----------------------------------------------------------------------------------------------

    def _run(self, call: Call[Result]) -> Result:
        course = Course(call)
        for _ in self._walk(course):
            pass
        return course.result

    def _walk(self, course: Course[Any]) -> Generator[Any, None, None]:
        stream = _Stream(self._http)
        try:
            while (step := course.step) is not None:
                if isinstance(step, Give):
                    yield step.item
                    course.go_on(None)
                    continue
                try:
                    value = _take(step, stream)
                except Lost as lost:
                    course.lose(lost)
                else:
                    course.go_on(value)
        finally:
            course.close()
            stream.close()


def _take(step: Step, stream: _Stream) -> Any:
    match step:
        case Send():
            return stream.send(step)
        case Read():
            return stream.read()
        case Pause():
            time.sleep(step.seconds)
        case Do():
            return step.work()
    return None


class _Stream:
    """The answer of a call that is still being read: one at most."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http
        self._response: httpx2.Response | None = None
        self._data: Iterator[bytes] = iter(())

    def send(self, step: Send) -> Answer:
        self.close()
        try:
            response = self._http.send(request_of(step.request, self._http.build_request), stream=True)
            if step.stream and response.status_code == httpx2.codes.OK:
                self._response, self._data = response, response.iter_raw()
                return answer_of(response, content=False)
            try:
                response.read()
            finally:
                response.close()
        except httpx2.HTTPError as error:
            raise lost_of(error) from error
        return answer_of(response, content=True)

    def read(self) -> bytes:
        try:
            return next(self._data, b"")
        except httpx2.HTTPError as error:
            raise lost_of(error) from error

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None
