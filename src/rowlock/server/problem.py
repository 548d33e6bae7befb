"""Problem details (RFC 9457): every error the server answers with, made in one place.

What an error of ours means over HTTP is one line in `_MEANINGS`. Whatever is not foreseen is a 500 that says nothing
but the number under which the log has the rest.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rowlock import errors as ours

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MEDIA_TYPE = "application/problem+json"
_AGAIN_SECONDS = "2"

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


class Refusal(Exception):
    """Raise in a route or a middleware: the request is answered with this problem."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
        errors: Iterable[BadPart] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})
        parts = list(errors) if errors is not None else None
        self.problem = Problem(
            type=_uri(kind), title=_phrase(status), status=status, detail=detail, errors=parts, **more
        )


class _Meaning(NamedTuple):
    error: type[Exception]
    status: int
    kind: str
    # In place of the error's own words, where those are about our own machines.
    says: str | None = None
    retry: bool = False


# The first that fits counts: an error stands before what it descends from.
_MEANINGS = (
    _Meaning(ours.UnknownFlow, 404, "unknown-flow"),
    _Meaning(ours.NotFound, 404, "not-found"),
    _Meaning(ours.IdempotencyConflict, 422, "idempotency-conflict"),
    _Meaning(ours.InvalidInput, 422, "invalid-input"),
    _Meaning(ours.FlowClosed, 409, "flow-closed"),
    _Meaning(ours.LockHeld, 409, "lock-held"),
    _Meaning(ours.LeaseLost, 409, "lease-lost"),
    _Meaning(ours.LimitReached, 429, "limit-reached", retry=True),
    _Meaning(ours.Refused, 409, "refused"),
    _Meaning(
        ours.LedgerUnavailable, 503, "ledger-unavailable",
        "The ledger cannot be reached now; nothing is known to have changed. Try again.", retry=True,
    ),
    _Meaning(ours.LedgerFull, 507, "ledger-full", "The ledger's disk is full; nothing was written. Free space there."),
    _Meaning(
        ours.SchemaMismatch, 503, "schema-mismatch",
        "The ledger's tables do not fit this server: run rowlock migrate, or upgrade the server.",
    ),
    _Meaning(
        ours.OutcomeUnknown, 503, "outcome-unknown",
        "The connection to the ledger broke during a commit: look whether it was done before you try again.",
    ),
    _Meaning(
        ours.StorageUnavailable, 503, "storage-unavailable", "The files cannot be reached now. Try again.", retry=True,
    ),
    _Meaning(ours.StorageFull, 507, "storage-full", "The place where files are kept is full. Free space there."),
    _Meaning(
        ours.StorageRefused, 502, "storage-refused",
        "The place where files are kept refuses this server; its log says why.",
    ),
)  # fmt: skip


class Answer(NamedTuple):
    """A problem with the headers that go with it; `hidden` when the log must have what the problem does not say."""

    problem: Problem
    headers: dict[str, str]
    hidden: bool = False

    def response(self, instance: str) -> Response:
        problem = self.problem.model_copy(update={"instance": instance})
        content = problem.model_dump_json(exclude_none=True, by_alias=True)
        return Response(content, problem.status, self.headers, MEDIA_TYPE)


def answer_to(error: Exception) -> Answer:
    """What the caller is told about any error at all."""
    if isinstance(error, Refusal):
        return Answer(error.problem, error.headers)
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        problem = Problem(
            title=_phrase(error.status_code), status=error.status_code, detail=_http_detail(error)
        )
        return Answer(problem, dict(error.headers or {}))
    for meaning in _MEANINGS:
        if isinstance(error, meaning.error):
            return _of_ours(error, meaning)
    detail = "The server failed; the request may or may not have had an effect. Its log says why, under this instance."
    return Answer(
        Problem(type=_uri("internal-error"), title=_phrase(500), status=500, detail=detail), {}, hidden=True
    )


def _of_ours(error: Exception, meaning: _Meaning) -> Answer:
    problem = Problem(
        type=_uri(meaning.kind),
        title=_phrase(meaning.status),
        status=meaning.status,
        detail=meaning.says or str(error),
        errors=_parts_of(error),
    )
    return Answer(
        problem, {"Retry-After": _AGAIN_SECONDS} if meaning.retry else {}, hidden=meaning.says is not None
    )


def _parts_of(error: Exception) -> list[BadPart] | None:
    if isinstance(error, ours.InvalidJob):
        return [BadPart(where="body", pointer=one.pointer, detail=one.detail) for one in error.problems]
    pointer = getattr(error, "pointer", None)
    return None if pointer is None else [BadPart(where="body", pointer=pointer, detail=str(error))]


def _invalid(error: RequestValidationError) -> Answer:
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        place = found[0]["loc"][-1]
        because = found[0].get("ctx", {}).get("error", "")
        detail = f"The body is not JSON: {because} at character {place}."
        return Answer(Problem(type=_uri("not-json"), title=_phrase(400), status=400, detail=detail), {})
    parts = [_part(one) for one in found]
    many = "One part" if len(parts) == 1 else f"{len(parts)} parts"
    detail = f"{many} of the request cannot be used; nothing was done."
    return Answer(
        Problem(type=_uri("invalid-input"), title=_phrase(422), status=422, detail=detail, errors=parts), {}
    )


def _part(one: Mapping[str, Any]) -> BadPart:
    # Never the value itself: it may be a secret.
    where, *path = one["loc"]
    return BadPart(
        where=where if where in ("query", "path", "header") else "body",
        pointer=pointer(path),
        detail=one["msg"],
    )


def pointer(path: Iterable[str | int]) -> str:
    """A JSON Pointer (RFC 6901) from the steps to a value."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _uri(kind: str | None) -> str:
    return "about:blank" if kind is None else f"urn:rowlock:problem:{kind}"


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in list(HTTPStatus) else f"Status {status}"


def _http_detail(error: HTTPException) -> str:
    match error.detail:
        case "Not Found":
            return "There is nothing at this address. What there is: /openapi.json"
        case "Method Not Allowed":
            return "This address does not take that method."
    return str(error.detail)
