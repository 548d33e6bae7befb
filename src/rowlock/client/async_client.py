"""The async client: the same calls, walked without blocking the event loop."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
import httpx2
from anyio.to_thread import run_sync

from rowlock.client.address import Address
from rowlock.client.calls import Calls
from rowlock.client.download import download
from rowlock.client.order import Redrivable, job_order, redrive_order
from rowlock.client.retries import Retries
from rowlock.client.steps import Answer, Call, Course, Do, Give, Lost, Pause, Read, Send, Step
from rowlock.client.wire import answer_of, lost_of, request_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
    from os import PathLike

    from rowlock.client.event import Event
    from rowlock.jobs.job import InputStatus, JobStatus, Policy
    from rowlock.server.job_views import InputView, JobAccepted, JobPlan, JobView, Redriven
    from rowlock.server.views import Ready

Result = TypeVar("Result")


class AsyncClient:
    """`Client` for async programs: the same methods and arguments. Use it in an `async with`."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, attempts: int = 5
    ) -> None:
        self._calls = Calls(Address.of(url, token, timeout), Retries(attempts))
        self._http = httpx2.AsyncClient(timeout=timeout, follow_redirects=False)

    def __repr__(self) -> str:
        return f"AsyncClient({self._calls.address.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes its connections."""
        await self._http.aclose()

    async def ready(self) -> Ready:
        """As `Client.ready`."""
        return await self._run(self._calls.ready())

    async def submit(
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
        """As `Client.submit`."""
        order = job_order(
            inputs,
            exporter=exporter,
            policy=policy,
            priority=priority,
            deadline=deadline,
            webhook_url=webhook_url,
        )
        return await self._run(self._calls.submit(order, idempotency_key))

    async def validate(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        exporter: str | None = None,
        policy: Policy = "fail_fast",
        priority: int = 0,
        deadline: float | None = None,
        webhook_url: str | None = None,
    ) -> JobPlan:
        """As `Client.validate`."""
        order = job_order(
            inputs,
            exporter=exporter,
            policy=policy,
            priority=priority,
            deadline=deadline,
            webhook_url=webhook_url,
        )
        return await self._run(self._calls.validate(order))

    async def job(self, key: str) -> JobView:
        """As `Client.job`."""
        return await self._run(self._calls.job(key))

    def jobs(
        self, *, status: JobStatus | None = None, exporter: str | None = None, page_size: int = 100
    ) -> AsyncIterator[JobView]:
        """As `Client.jobs`."""
        return self._walk(Course(self._calls.jobs(status=status, exporter=exporter, page_size=page_size)))

    def inputs(
        self, key: str, *, status: InputStatus | None = None, page_size: int = 1000
    ) -> AsyncIterator[InputView]:
        """As `Client.inputs`."""
        return self._walk(Course(self._calls.inputs(key, status=status, page_size=page_size)))

    async def cancel(self, key: str) -> JobView:
        """As `Client.cancel`."""
        return await self._run(self._calls.cancel(key))

    async def redrive(
        self,
        key: str,
        input_ids: Sequence[int] | None = None,
        *,
        status: Redrivable | None = None,
        error_contains: str | None = None,
    ) -> Redriven:
        """As `Client.redrive`."""
        return await self._run(self._calls.redrive(key, redrive_order(input_ids, status, error_contains)))

    def events(self, key: str) -> AsyncGenerator[Event, None]:
        """As `Client.events`; put it into `contextlib.aclosing` if you may leave it early."""
        return self._walk(Course(self._calls.events(key)))

    async def wait(self, key: str, timeout: float | None = None) -> JobView:  # noqa: ASYNC109 - as the plain one
        """As `Client.wait`."""
        return await self._run(self._calls.wait(key, timeout))

    async def download(self, key: str, input_id: int, to: str | PathLike[str]) -> Path:
        """As `Client.download`."""
        return await self._run(download(self._calls, key, input_id, Path(to)))

    # -- walking -----------------------------------------------------------------------------------------------

    async def _run(self, call: Call[Result]) -> Result:
        course = Course(call)
        async with aclosing(self._walk(course)) as walk:
            async for _ in walk:
                pass
        return course.result

    async def _walk(self, course: Course[Any]) -> AsyncGenerator[Any, None]:
        stream = _Stream(self._http)
        try:
            while (step := course.step) is not None:
                if isinstance(step, Give):
                    yield step.item
                    course.go_on(None)
                    continue
                try:
                    value = await _take(step, stream)
                except Lost as lost:
                    course.lose(lost)
                else:
                    course.go_on(value)
        finally:
            course.close()
            with anyio.CancelScope(shield=True):
                await stream.close()


async def _take(step: Step, stream: _Stream) -> Any:
    match step:
        case Send():
            return await stream.send(step)
        case Read():
            return await stream.read()
        case Pause():
            await anyio.sleep(step.seconds)
        case Do():
            return await run_sync(step.work)
    return None


class _Stream:
    """The answer of a call that is still being read: one at most."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._response: httpx2.Response | None = None
        self._data: AsyncIterator[bytes]

    async def send(self, step: Send) -> Answer:
        await self.close()
        try:
            response = await self._http.send(request_of(step.request, self._http.build_request), stream=True)
            if step.stream and response.status_code == httpx2.codes.OK:
                self._response, self._data = response, response.aiter_raw()
                return answer_of(response, content=False)
            try:
                await response.aread()
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise lost_of(error) from error
        return answer_of(response, content=True)

    async def read(self) -> bytes:
        try:
            return await anext(self._data, b"")
        except httpx2.HTTPError as error:
            raise lost_of(error) from error

    async def close(self) -> None:
        if self._response is not None:
            await self._response.aclose()
            self._response = None
