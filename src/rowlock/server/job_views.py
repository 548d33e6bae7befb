"""What the routes of jobs take and answer with. The first names are those of the contract, in its order."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt
from pydantic.alias_generators import to_camel

from rowlock.jobs.inputs import WholeNumber, whole
from rowlock.jobs.job import InputStatus, Job, JobInput, JobStatus, Policy
from rowlock.jobs.jobs import Plan
from rowlock.queue.payload import MAX_PRIORITY
from rowlock.server.views import BIGGEST

_YEAR = 366 * 86_400.0


class _Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _Order(_Camel):
    """What somebody sends: a name that we do not know is a mistake, not a wish."""

    model_config = ConfigDict(extra="forbid")


class JobOrder(_Order):
    """A job to be made: one file for each input."""

    inputs: list[dict[str, Any]] = Field(
        description="What the exporter needs to know for each file.", json_schema_extra={"minItems": 1}
    )
    exporter: str | None = Field(None, max_length=100, description="May be left out where there is only one.")
    policy: Policy = Field(
        "fail_fast", description="fail_fast: the first dead input ends the job. continue: the others go on."
    )
    priority: WholeNumber = Field(0, ge=0, le=MAX_PRIORITY, description="Higher first.")
    deadline: float | None = Field(
        None,
        gt=0,
        le=_YEAR,
        strict=True,
        allow_inf_nan=False,
        description="Seconds after which the job fails.",
    )
    webhook_url: str | None = Field(
        None,
        max_length=2000,
        pattern=r"^https?://[!-~]+$",
        description="Is told about the end of the job, if its host is one of ROWLOCK_WEBHOOK_HOSTS.",
    )


class JobAccepted(_Camel):
    """The job is in the ledger, and will be done."""

    job_id: str = Field(examples=["J20260110_000777"])
    status: Literal["SUBMITTED"]


class JobPlan(_Camel):
    """What would be made; nothing was written."""

    valid: Literal[True]
    exporter: str
    total: int
    policy: Policy
    priority: int
    deadline: float | None

    @classmethod
    def of(cls, plan: Plan) -> Self:
        named = {name: plan.order[name] for name in ("exporter", "policy", "priority", "deadline")}
        return cls(valid=True, total=len(plan.payloads), **named)


class JobView(_Camel):
    """A job now. `total = pending + running + retryWait + done + failed + cancelled`, always."""

    job_id: str
    status: JobStatus
    total: int
    pending: int
    running: int
    done: int
    failed: int = Field(description="Dead inputs; see them with /inputs?status=DLQ.")
    files_generated: int
    files_reused: int
    error_message: str | None
    data_content: list[dict[str, Any]] | None = Field(
        description="The fields of each input that succeeded and the `s3Path` of its file; null while the job is open, "
        "in lists, and for jobs with more than 1,000 inputs, whose files are in pages at `inputs`; or ask for `content=all`."
    )
    retry_wait: int
    cancelled: int
    exporter: str
    policy: Policy
    priority: int
    requested_at: datetime
    requested_by: str | None
    started_at: datetime | None
    completed_at: datetime | None
    deadline_at: datetime | None
    inputs: str = Field(description="Where its inputs are.")

    @classmethod
    def of(cls, job: Job, succeeded: Iterable[JobInput] | None = None) -> Self:
        content = None if succeeded is None else [{**one.fields, "s3Path": one.path} for one in succeeded]
        return cls(
            job_id=job.key,
            failed=job.dead,
            files_generated=job.generated,
            files_reused=job.reused,
            data_content=content,
            inputs=f"/jobs/{job.key}/inputs",
            **{name: getattr(job, name) for name in _SAME},
        )


_SAME = (
    "status", "total", "pending", "running", "done", "error_message", "retry_wait", "cancelled", "exporter", "policy",
    "priority", "requested_at", "requested_by", "started_at", "completed_at", "deadline_at",
)  # fmt: skip


class JobPage(_Camel):
    jobs: list[JobView]
    next: str | None = Field(description="Where the next page is; null on the last one.")


class InputView(_Camel):
    """One input of a job, and its file."""

    input_id: int
    fields: dict[str, Any]
    status: InputStatus
    attempts: int
    error: str | None
    s3_path: str | None
    reused: bool
    rows: int | None
    bytes: int | None
    sha256: str | None
    next_retry_at: datetime | None
    created_at: datetime
    claimed_at: datetime | None
    settled_at: datetime | None
    download: str | None = Field(description="Where its file can be had through this server.")

    @classmethod
    def of(cls, job: str, one: JobInput) -> Self:
        return cls(
            input_id=one.id,
            s3_path=one.path,
            download=f"/jobs/{job}/inputs/{one.id}/download" if one.path else None,
            **{name: getattr(one, name) for name in _SAME_OF_INPUT},
        )


_SAME_OF_INPUT = (
    "fields", "status", "attempts", "error", "reused", "rows", "bytes", "sha256", "next_retry_at", "created_at",
    "claimed_at", "settled_at",
)  # fmt: skip


class InputPage(_Camel):
    inputs: list[InputView]
    next: str | None = Field(description="Where the next page is; null on the last one.")


# The limits stand inside: outside the validator they would not be told in the schema.
InputId = Annotated[StrictInt, Field(ge=1, le=BIGGEST), BeforeValidator(whole)]


class Redrive(_Order):
    """Which inputs run again."""

    input_ids: list[InputId] | None = Field(
        None, min_length=1, max_length=10_000, description="Left out: all that are dead or cancelled."
    )
    status: Literal["DLQ", "CANCELLED"] | None = Field(None, description="Only those that are this.")
    error_contains: str | None = Field(
        None,
        min_length=1,
        max_length=500,
        pattern=r"^[^\x00]+$",  # no database has it in a text
        description="Only those whose error contains this text.",
    )


class Redriven(_Camel):
    job_id: str
    status: JobStatus
    redriven: int = Field(description="How many inputs run again.")
