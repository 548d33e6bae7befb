"""Problem details (RFC 9457): every error the server answers with, made in one place.

What an error of ours means over HTTP is one line in `meanings.py`. Whatever is not foreseen is a 500 that says nothing
but the number under which the log has the rest.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rowlock import errors as ours
from rowlock.server.meanings import BadPart, Meaning, Problem, meaning_of, uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MEDIA_TYPE = "application/problem+json"
_AGAIN_SECONDS = "2"


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
            type=uri(kind), title=_phrase(status), status=status, detail=detail, errors=parts, **more
        )


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
    meaning = meaning_of(error)
    if meaning is not None:
        return _of_ours(error, meaning)
    detail = "The server failed; the request may or may not have had an effect. Its log says why, under this instance."
    return Answer(
        Problem(type=uri("internal-error"), title=_phrase(500), status=500, detail=detail), {}, hidden=True
    )


def _of_ours(error: Exception, meaning: Meaning) -> Answer:
    problem = Problem(
        type=uri(meaning.kind),
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
        return Answer(Problem(type=uri("not-json"), title=_phrase(400), status=400, detail=detail), {})
    parts = [_part(one) for one in found]
    many = "One part" if len(parts) == 1 else f"{len(parts)} parts"
    detail = f"{many} of the request cannot be used; nothing was done."
    return Answer(
        Problem(type=uri("invalid-input"), title=_phrase(422), status=422, detail=detail, errors=parts), {}
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


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in list(HTTPStatus) else f"Status {status}"


def _http_detail(error: HTTPException) -> str:
    match error.detail:
        case "Not Found":
            return "There is nothing at this address. What there is: /openapi.json"
        case "Method Not Allowed":
            return "This address does not take that method."
    return str(error.detail)
