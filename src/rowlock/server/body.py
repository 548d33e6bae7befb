"""The body of a request, read in its endpoint's own thread: parsing megabytes would hold up everybody on the event loop.

@router.post("/jobs")
@needs(Role.SUBMIT)
@takes(JobOrder)
def submit(body: RawBody) -> …:
    order = read_body(JobOrder, body)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from collections.abc import Callable

Endpoint = TypeVar("Endpoint", bound="Callable[..., Any]")
Model = TypeVar("Model", bound=BaseModel)


def takes(model: type[BaseModel]) -> Callable[[Endpoint], Endpoint]:
    """Declares what an endpoint reads with `read_body`, for the document."""

    def declare(endpoint: Endpoint) -> Endpoint:
        endpoint.takes = model  # type: ignore[attr-defined]
        return endpoint

    return declare


async def _raw_body(request: Request) -> bytes:
    return await request.body()


RawBody = Annotated[bytes, Depends(_raw_body)]


def read_body(model: type[Model], raw: bytes) -> Model:
    """What FastAPI would make of a body, with the same errors."""
    if not raw:
        raise RequestValidationError([{"type": "missing", "loc": ("body",), "msg": "Field required"}])
    try:
        return model.model_validate(json.loads(raw), from_attributes=True)
    except json.JSONDecodeError as error:
        place = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
        raise RequestValidationError([place]) from error
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in found]) from error
    except (ValueError, RecursionError) as error:  # endless numbers, endless depth, bytes that are no text
        raise HTTPException(400, "The body cannot be read as JSON.") from error
