"""The events of a job as server-sent events: each once, from wherever the reader was, until the job has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync
from starlette.responses import StreamingResponse

from rowlock import clock
from rowlock.server.job_views import JobView
from rowlock.server.problem import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rowlock.app import Rowlock
    from rowlock.jobs.job import Job, JobEvent
    from rowlock.server.presence import Presence

POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0  # less than what proxies wait for
# Then the reader comes back with its Last-Event-ID: a token that was revoked meanwhile does not.
LONGEST_SECONDS = 600.0
MOST_STREAMS = 64
_PAGE = 100


class EventStream(StreamingResponse):
    media_type = "text/event-stream"


class EventStreams:
    """All that this server has open; each asks the ledger once in a while, so there is a limit to them."""

    def __init__(self, app: Rowlock, presence: Presence) -> None:
        self._app = app
        self._presence = presence
        self._open = 0

    def check_room(self) -> None:
        if self._open >= MOST_STREAMS:
            raise Refusal(
                503,
                f"{MOST_STREAMS} readers watch jobs here already. Poll GET /jobs/{{jobId}}, or come back later.",
                kind="too-many-streams",
                headers={"Retry-After": "10"},
            )

    async def follow(self, key: str, after: int) -> AsyncIterator[str]:
        """`submitted`, `completed`, … with their ids, and `progress` (the job as it is) whenever its counts change."""
        self._open += 1
        try:
            async for part in self._follow(key, after):
                yield part
        finally:
            self._open -= 1

    async def _follow(self, key: str, after: int) -> AsyncIterator[str]:
        began = spoke = clock.monotonic()
        told = None
        while not self._presence.draining and clock.monotonic() - began < LONGEST_SECONDS:
            # The job first: if it has ended, the event that says so is among those read after it.
            job, events = await run_sync(self._look, key, after)
            parts = [_event(event) for event in events]
            if job.etag != told:
                parts.append(_progress(job))
                told = job.etag
            if parts:
                yield "".join(parts)
                spoke = clock.monotonic()
            if events:
                after = events[-1].id
            elif not job.open:
                return
            else:
                if clock.monotonic() - spoke >= HEARTBEAT_SECONDS:
                    yield ": still here\n\n"
                    spoke = clock.monotonic()
                await anyio.sleep(POLL_SECONDS)

    def _look(self, key: str, after: int) -> tuple[Job, list[JobEvent]]:
        jobs = self._app.jobs
        return jobs.get(key), jobs.events(key, after=after, limit=_PAGE)


def _event(event: JobEvent) -> str:
    data = json.dumps({"at": event.at.isoformat(), "kind": event.kind, "detail": event.detail})
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"


def _progress(job: Job) -> str:
    # Without an id: whoever comes back is told the counts anyway.
    return f"event: progress\ndata: {JobView.of(job).model_dump_json(by_alias=True)}\n\n"
