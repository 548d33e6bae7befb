"""What each error of ours means over HTTP: one table, read by the server forwards and by the client backwards.

It needs no web framework, so that a client needs none either.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from rowlock import errors as ours

Where = Literal["body", "query", "path", "header"]


class BadPart(BaseModel):
    """One part of a request that was refused."""

    where: Where = Field("body", alias="in", description="Which part of the request the pointer leads into.")
    pointer: str = Field(description="A JSON Pointer (RFC 6901) to it, as in /inputs/3/effectiveDate.")
    detail: str = Field(description="What is wrong with it.")

    model_config = ConfigDict(populate_by_name=True)


class Problem(BaseModel):
    """What went wrong, as RFC 9457 has it."""

    type: str = Field("about:blank", description="The kind of problem, as a URI that never changes.")
    title: str = Field(description="The kind of problem, in words.")
    status: int = Field(description="The HTTP status.", ge=400, le=599)
    detail: str | None = Field(None, description="What happened, on what, and what to do.")
    instance: str | None = Field(None, description="This occurrence; the server's log has the same number.")
    errors: list[BadPart] | None = Field(None, description="Each bad part of the request.")

    model_config = ConfigDict(extra="allow")


class Meaning(NamedTuple):
    error: type[ours.RowlockError]
    status: int
    kind: str
    # In place of the error's own words, where those are about our own machines.
    says: str | None = None
    retry: bool = False


# The first that fits counts: an error stands before what it descends from.
MEANINGS = (
    Meaning(ours.UnknownFlow, 404, "unknown-flow"),
    Meaning(ours.NotFound, 404, "not-found"),
    Meaning(ours.IdempotencyConflict, 422, "idempotency-conflict"),
    Meaning(ours.InvalidInput, 422, "invalid-input"),
    Meaning(ours.FlowClosed, 409, "flow-closed"),
    Meaning(ours.LockHeld, 409, "lock-held"),
    Meaning(ours.LeaseLost, 409, "lease-lost"),
    Meaning(ours.LimitReached, 429, "limit-reached", retry=True),
    Meaning(ours.Refused, 409, "refused"),
    Meaning(
        ours.LedgerUnavailable, 503, "ledger-unavailable",
        "The ledger cannot be reached now; nothing is known to have changed. Try again.", retry=True,
    ),
    Meaning(ours.LedgerFull, 507, "ledger-full", "The ledger's disk is full; nothing was written. Free space there."),
    Meaning(
        ours.SchemaMismatch, 503, "schema-mismatch",
        "The ledger's tables do not fit this server: run rowlock migrate, or upgrade the server.",
    ),
    Meaning(
        ours.OutcomeUnknown, 503, "outcome-unknown",
        "The connection to the ledger broke during a commit: look whether it was done before you try again.",
    ),
    Meaning(
        ours.StorageUnavailable, 503, "storage-unavailable", "The files cannot be reached now. Try again.", retry=True,
    ),
    Meaning(ours.StorageFull, 507, "storage-full", "The place where files are kept is full. Free space there."),
    Meaning(
        ours.StorageRefused, 502, "storage-refused",
        "The place where files are kept refuses this server; its log says why.",
    ),
)  # fmt: skip


def meaning_of(error: Exception) -> Meaning | None:
    """How the server tells it."""
    return next((one for one in MEANINGS if isinstance(error, one.error)), None)


def error_of(problem: Problem) -> ours.RowlockError | None:
    """The error that a problem tells of, with its parts; None if it is none of ours."""
    for one in MEANINGS:
        if problem.type == uri(one.kind):
            detail = problem.detail or problem.title
            if one.error is not ours.InvalidInput:
                return one.error(detail)
            if problem.errors:
                return ours.InvalidJob([ours.Problem(part.pointer, part.detail) for part in problem.errors])
            return ours.InvalidInput(detail)
    return None


def uri(kind: str | None) -> str:
    return "about:blank" if kind is None else f"urn:rowlock:problem:{kind}"
