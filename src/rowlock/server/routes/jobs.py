"""Export jobs: one file for each input, and one outcome."""

# ruff: noqa: FAST003 - the contract writes jobId, Python writes job_id: an alias is both

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import RedirectResponse, StreamingResponse

from rowlock.app import Rowlock
from rowlock.errors import Refused
from rowlock.jobs.job import InputStatus, Job, JobStatus
from rowlock.jobs.jobs import KEY, Jobs
from rowlock.server.event_stream import EventStream
from rowlock.server.job_views import (
    InputPage,
    InputView,
    JobAccepted,
    JobOrder,
    JobPage,
    JobPlan,
    JobView,
    Redrive,
    Redriven,
)
from rowlock.server.route import GuardedRoute, RecordId, needs, problems
from rowlock.server.tokens import Role
from rowlock.server.views import BIGGEST

router = APIRouter(route_class=GuardedRoute, tags=["jobs"])

# Larger jobs are read in pages, so that an answer takes as long for 100,000 inputs as for one.
_MOST_CONTENT = 1000
_AGAIN_SECONDS = "2"
_SIGNED_SECONDS = 900.0
_ANY_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
}

_EVENT = {
    "type": "object",
    "description": "submitted, completed, failed, cancelled, redriven; and progress, with the job as it is.",
    "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["event", "data"],
}


# Where the reader of an answer may go next.
_LINKS = {
    name: {"operationId": name, "parameters": {"jobId": "$response.body#/jobId"}}
    for name in ("showJob", "listInputs", "watchJob", "cancelJob", "redriveJob")
}


class _JobKey(StringConvertor):
    """Without a colon, so that GET /jobs/J…:cancel is not a job of that name."""

    regex = "[^/:]+"


register_url_convertor("job", _JobKey())


def _the_app(request: Request) -> Rowlock:
    app: Rowlock = request.app.state.rowlock
    return app


def _the_jobs(request: Request) -> Jobs:
    return _the_app(request).jobs


TheApp = Annotated[Rowlock, Depends(_the_app)]
TheJobs = Annotated[Jobs, Depends(_the_jobs)]
JobId = Annotated[
    str,
    Path(
        alias="jobId",
        description="As in J20260110_000777.",
        json_schema_extra={"pattern": f"^{KEY.pattern}$"},
    ),
]
Limit = Annotated[int, Query(ge=1, le=1000, description="So many at most.")]
Cursor = Annotated[
    int,
    Query(ge=0, le=BIGGEST, description="Where the page begins; taken from `next` of the one before."),
]


@router.post(
    "/jobs",
    status_code=202,
    operation_id="submitJob",
    response_model=JobAccepted,
    responses={
        202: {"links": _LINKS},
        200: {"model": JobPlan, "description": "With validate_only: what would be made."},
        **problems(409),
    },
)
@needs(Role.SUBMIT)
def submit(
    request: Request,
    response: Response,
    jobs: TheJobs,
    order: JobOrder,
    *,
    validate_only: Annotated[bool, Query(description="Only say whether it could be made.")] = False,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            pattern="^[!-~]+$",
            description="The same key and body again is the same job; with another body it is refused.",
        ),
    ] = None,
) -> Any:
    """Makes a job of all these inputs, or an error and nothing."""
    wanted = order.model_dump()
    if validate_only:
        return _json(JobPlan.of(jobs.plan(**wanted)))
    job, _ = jobs.submit(**wanted, idempotency_key=idempotency_key, requested_by=_name(request))
    response.headers.update({"Location": f"/jobs/{job.key}", "Retry-After": _AGAIN_SECONDS})
    # Also when it runs by now: whoever asks again gets the answer that was lost.
    return JobAccepted(job_id=job.key, status="SUBMITTED")


@router.get("/jobs", operation_id="listJobs")
@needs(Role.READ)
def find(
    jobs: TheJobs,
    *,
    status: JobStatus | None = None,
    exporter: Annotated[str | None, Query(pattern="^[!-~]+$", max_length=100)] = None,
    limit: Limit = 50,
    cursor: Cursor = 0,
) -> JobPage:
    """Jobs, newest first."""
    found = jobs.list(status=status, exporter=exporter, before=cursor or None, limit=limit + 1)
    page = found[:limit]
    after = page[-1].id if len(found) > limit else None
    return JobPage(
        jobs=[JobView.of(job) for job in page],
        next=_next("/jobs", after, limit=limit, status=status, exporter=exporter),
    )


@router.get(
    "/jobs/{jobId:job}",
    operation_id="showJob",
    response_model=JobView,
    responses={304: {"description": "Nothing has changed."}},
)
@needs(Role.READ)
def show(
    response: Response,
    jobs: TheJobs,
    key: JobId,
    *,
    content: Annotated[
        Literal["few", "all"],
        Query(description="`all`: the files so far in any case, however many and however long it takes."),
    ] = "few",
    if_none_match: Annotated[str | None, Header(description="The ETag of the answer before.")] = None,
) -> Any:
    """A job with its counts, and its files when it has ended. It takes as long for 100,000 inputs as for one."""
    job = jobs.get(key)
    headers = {"ETag": f'"{job.etag}"', "Cache-Control": "private, no-cache"}
    if job.open:
        headers["Retry-After"] = _AGAIN_SECONDS
    if _matches(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    if content == "all":
        return JobView.of(job, jobs.all_inputs(key, status="SUCCEEDED"))
    return _whole(jobs, job)


@router.get("/jobs/{jobId:job}/inputs", operation_id="listInputs")
@needs(Role.READ)
def inputs(
    jobs: TheJobs, key: JobId, *, status: InputStatus | None = None, limit: Limit = 100, cursor: Cursor = 0
) -> InputPage:
    """The inputs of a job, in the order in which they were given."""
    found = jobs.inputs(key, status=status, after=cursor, limit=limit + 1)
    page = found[:limit]
    after = page[-1].id if len(found) > limit else None
    return InputPage(
        inputs=[InputView.of(key, one) for one in page],
        next=_next(f"/jobs/{key}/inputs", after, limit=limit, status=status),
    )


@router.get(
    "/jobs/{jobId:job}/inputs/{inputId}/download",
    operation_id="downloadInput",
    response_class=Response,
    responses={
        **_ANY_FILE,
        307: {"description": "The file is there, for the next 15 minutes."},
        **problems(409, 502),
    },
)
@needs(Role.READ)
def download(app: TheApp, key: JobId, input_id: Annotated[RecordId, Path(alias="inputId")]) -> Response:
    """The file of an input: from its store by a signed address, or, if it is in a folder, from here."""
    one = app.jobs.input(key, input_id)
    if one.path is None:
        raise Refused(f"Input {input_id} of job {key} has no file: it is {one.status}.")
    if not app.store.url.startswith("file:"):
        address = app.store.sign(one.path, _SIGNED_SECONDS)
        return RedirectResponse(address, 307, {"Cache-Control": "no-store"})
    exporter = app.jobs.get(key).exporter
    kind = app.exporters[exporter].content_type if exporter in app.exporters else "application/octet-stream"
    name = one.path.rpartition("/")[2]
    headers = {
        "Content-Length": str(app.store.head(one.path).size),
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return StreamingResponse(app.store.read(one.path), headers=headers, media_type=kind)


@router.post("/jobs/{jobId:job}:cancel", operation_id="cancelJob", responses=problems(409))
@needs(Role.OPERATE)
def cancel(request: Request, jobs: TheJobs, key: JobId) -> JobView:
    """Ends a job now: what waits is cancelled, and what runs is revoked."""
    name = _name(request)
    return _whole(jobs, jobs.cancel(key, f"cancelled by {name}" if name else "cancelled"))


@router.post("/jobs/{jobId:job}:redrive", operation_id="redriveJob", responses=problems(409))
@needs(Role.OPERATE)
def redrive(jobs: TheJobs, key: JobId, order: Redrive | None = None) -> Redriven:
    """Lets dead and cancelled inputs run again: all of them, or those named, or that fit. The job is open again."""
    chosen = (order or Redrive()).model_dump()
    if chosen["input_ids"] is not None:
        chosen["input_ids"] = list(dict.fromkeys(chosen["input_ids"]))
    redriven = jobs.redrive(key, **chosen)
    return Redriven(job_id=key, status=jobs.get(key).status, redriven=redriven)


@router.get(
    "/jobs/{jobId:job}/events",
    operation_id="watchJob",
    response_class=EventStream,
    responses={
        200: {"content": {"text/event-stream": {"schema": _EVENT}}},
        204: {"description": "The job has ended, and there is nothing that you have not seen."},
    },
)
@needs(Role.READ)
def events(
    request: Request,
    jobs: TheJobs,
    key: JobId,
    last_event_id: Annotated[
        int, Header(ge=0, le=BIGGEST, description="The id of the last event that you have seen.")
    ] = 0,
) -> Response:
    """What happens to a job, as server-sent events, until it has ended; its counts whenever they change."""
    job = jobs.get(key)
    if last_event_id and not job.open and not jobs.events(key, after=last_event_id, limit=1):
        return Response(status_code=204)  # a browser would come back for ever otherwise
    streams = request.app.state.streams
    streams.check_room()
    return EventStream(streams.follow(key, last_event_id), headers={"Cache-Control": "no-store"})


def _whole(jobs: Jobs, job: Job) -> JobView:
    """With its files, if there are few enough of them."""
    if job.open or job.total > _MOST_CONTENT:
        return JobView.of(job)
    return JobView.of(job, jobs.inputs(job.key, status="SUCCEEDED", limit=_MOST_CONTENT))


def _matches(given: str | None, etag: str) -> bool:
    known = [one.strip().removeprefix("W/") for one in (given or "").split(",")]
    return etag in known or known == ["*"]


def _next(path: str, cursor: int | None, **filters: Any) -> str | None:
    if cursor is None:
        return None
    return (
        f"{path}?{urlencode({name: value for name, value in filters.items() if value} | {'cursor': cursor})}"
    )


def _json(view: JobPlan) -> Response:
    return Response(view.model_dump_json(by_alias=True), media_type="application/json")


def _name(request: Request) -> str | None:
    caller = request.scope["rowlock"].caller
    return None if caller is None else caller.name
