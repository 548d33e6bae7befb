"""A job: a closed set of records submitted together, with one outcome. Its records are its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rowlock import clock

if TYPE_CHECKING:
    from datetime import datetime

    from rowlock.ledger.ledger import Row

JobStatus = Literal["SUBMITTED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
InputStatus = Literal["PENDING", "RUNNING", "RETRY_WAIT", "SUCCEEDED", "DLQ", "CANCELLED"]
Policy = Literal["fail_fast", "continue"]
OPEN = ("SUBMITTED", "RUNNING")


@dataclass(frozen=True, slots=True)
class Job:
    """As the ledger has it now. `total = pending + running + retry_wait + done + dead + cancelled`, always."""

    id: int
    key: str
    exporter: str
    status: JobStatus
    policy: Policy
    priority: int
    requested_at: datetime
    requested_by: str | None
    started_at: datetime | None
    completed_at: datetime | None
    deadline_at: datetime | None
    total: int
    running: int
    retry_wait: int
    done: int
    dead: int
    cancelled: int
    reused: int
    error_message: str | None
    ends: int
    revision: int
    webhook_url: str | None

    @classmethod
    def of(cls, row: Row) -> Job:
        return cls(
            id=row.job_id,
            key=row.job_key,
            exporter=row.exporter,
            status=row.status,
            policy=row.policy,
            priority=row.priority,
            requested_at=clock.as_datetime(row.requested_at),  # type: ignore[arg-type] # never null
            requested_by=row.requested_by,
            started_at=clock.as_datetime(row.started_at),
            completed_at=clock.as_datetime(row.completed_at),
            deadline_at=clock.as_datetime(row.deadline_at),
            total=row.total_inputs,
            running=row.running,
            retry_wait=row.retry_wait,
            done=row.done,
            dead=row.dead,
            cancelled=row.cancelled,
            reused=row.reused,
            error_message=row.error_message,
            ends=row.ends,
            revision=row.revision,
            webhook_url=row.webhook_url,
        )

    @property
    def pending(self) -> int:
        return self.total - self.running - self.retry_wait - self.done - self.dead - self.cancelled

    @property
    def generated(self) -> int:
        return self.done - self.reused

    @property
    def open(self) -> bool:
        return self.status in OPEN

    @property
    def etag(self) -> str:
        """Changes with everything that a reader of the job can see."""
        return f"{self.revision}-{self.running}-{self.retry_wait}"


@dataclass(frozen=True, slots=True)
class JobInput:
    """One input, live or settled."""

    id: int
    fields: dict[str, Any]
    status: InputStatus
    attempts: int
    next_retry_at: datetime | None
    path: str | None
    reused: bool
    rows: int | None
    bytes: int | None
    sha256: str | None
    error: str | None
    holder: int | None
    created_at: datetime
    claimed_at: datetime | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job."""

    id: int
    at: datetime
    kind: str
    detail: str | None
