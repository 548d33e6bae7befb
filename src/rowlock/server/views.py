"""What the queue's routes answer with. The names are those of `rowlock … --json`."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# The largest number that every reader of JSON has exactly.
BIGGEST = 2**53 - 1


class FlowView(BaseModel):
    """A flow and its records, counted."""

    flow: str
    state: Literal["active", "paused", "draining"]
    reason: str | None
    max_attempts: int
    max_deaths: int
    ready: int = Field(description="Records that could run now.")
    waiting: int = Field(description="Records whose time has not come.")
    processing: int
    retry_wait: int
    oldest_seconds: float | None = Field(description="Age of the oldest record that could run.")
    dead: int
    completed_last_hour: int


class Flows(BaseModel):
    flows: list[FlowView]


class InstanceView(BaseModel):
    """A process that is, or was, in the registry."""

    id: int
    name: str
    hostname: str
    pid: int
    version: str
    roles: str = Field(description="What it says it does, as in worker:score_survey;service:edgar.")
    state: Literal["active", "suspect", "draining", "stopped", "dead"]
    lease_seconds: float
    started_at: datetime
    heartbeat_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    ended_reason: str | None
    heartbeat_age: float
    holds: int = Field(description="Records it holds now.")
    completed: int
    failed: int
    stale_refused: int
    takeovers: int


class Instances(BaseModel):
    instances: list[InstanceView]


class Ready(BaseModel):
    """The server can serve."""

    status: Literal["ready"]


class ThisServer(BaseModel):
    """The server that answers."""

    instance: int | None = Field(description="This server in the registry.")
    schema_version: int = Field(description="The newest migration that it knows.")
    access: Literal["token", "open"] = Field(
        description="`open` while the ledger has never had a token: anybody on this machine may call."
    )


class Registry(Instances):
    server: ThisServer


class RecordName(BaseModel):
    id: int
    flow: str
    key: str


class Reason(BaseModel):
    """One gate that is closed, or what became of the record; with the figures its text is made of."""

    gate: str
    text: str

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]


class Why(BaseModel):
    """What a record waits for, or what became of it."""

    record: RecordName
    state: Literal["pending", "processing", "retry_wait", "completed", "dead", "cancelled"]
    reasons: list[Reason]
